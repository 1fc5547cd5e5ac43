"""Invented titles and genres for synthetic items: those of one taste are of one genre."""

import numpy as np
import pyarrow as pa

from safecf.data.datasets.synthetic import Synthetic
from safecf.data.reading.arrow import load_pandas

# Genres, the largest taste first, and words for their titles.
GENRES = {
    "Drama": "Letter House Winter Mother Silence Promise Daughter Return",
    "Comedy": "Wedding Neighbour Lottery Roommate Holiday Waiter Mistake Landlord",
    "Thriller": "Witness Signal Alibi Stranger Deadline Passenger Cellar Hostage",
    "Romance": "Kiss Summer Umbrella Bouquet Balcony Dance Postcard Valentine",
    "Science fiction": "Orbit Android Colony Airlock Nebula Clone Probe Starship",
    "Crime": "Heist Ledger Informer Vault Precinct Bribe Getaway Fence",
    "Fantasy": "Dragon Crown Oracle Amulet Tower Griffin Spell Kingdom",
    "Adventure": "Compass Jungle Expedition River Treasure Canyon Voyage Map",
    "Horror": "Attic Scarecrow Lullaby Basement Moth Séance Crypt Mirror",
    "Animation": "Hedgehog Toaster Balloon Teapot Pencil Beetle Kite Puddle",
    "Mystery": "Key Portrait Lighthouse Clue Manor Cipher Shadow Riddle",
    "Documentary": "Glacier Harvest Archive Factory Coastline Beehive Railway Census",
    "War": "Trench Convoy Ceasefire Medic Outpost Armistice Bridge Barracks",
    "Western": "Saddle Canyon Sheriff Railroad Mustang Prairie Saloon Bandit",
    "Musical": "Chorus Encore Tap Spotlight Overture Piano Ballroom Refrain",
    "Family": "Puppy Treehouse Pancake Grandmother Snowman Bicycle Kitten Picnic",
    "History": "Emperor Senate Plague Tapestry Cathedral Revolt Chronicle Treaty",
    "Sport": "Marathon Underdog Referee Relay Boxer Goalkeeper Comeback Summit",
    "Spy": "Courier Double Microfilm Embassy Sleeper Codebook Rendezvous Dossier",
    "Superhero": "Cape Mask Villain Sidekick Shield Lightning Metropolis Origin",
    "Martial arts": "Fist Temple Master Blade Lotus Dojo Tiger Bamboo",
    "Disaster": "Avalanche Tremor Flood Volcano Evacuation Hurricane Tunnel Comet",
    "Courtroom": "Verdict Jury Appeal Testimony Oath Objection Defender Evidence",
    "Noir": "Trench Coat|Cigarette|Alley|Saxophone|Blonde|Neon|Gumshoe|Midnight",
    "Road movie": "Motel Highway Convertible Detour Jukebox Mile Diner Hitchhiker",
    "Satire": "Minister Committee Slogan Billionaire Ribbon Paperwork Pundit Gala",
    "Biography": "Inventor Poet Aviator Composer Physicist Painter Explorer Orator",
    "Monster": "Kraken Swamp Tentacle Beast Lagoon Claw Yeti Hatchling",
    "Heist comedy": "Crowbar Safe Forgery Decoy Diamond Accomplice Blueprint Loot",
    "Time travel": "Clock Paradox Yesterday Loop Pendulum Century Machine Tomorrow",
    "Vampire": "Fang Coffin Bat Moonlight Castle Garlic Bloodline Dusk",
    "Cooking": "Kitchen Soufflé Recipe Spoon Baker Banquet Chef Vineyard",
    "Nature": "Meadow Otter Migration Reef Forest Tundra Falcon Tide",
    "Prison": "Warden Escape Corridor Parole Island Spoon Inmate Wall",
    "Ghost story": "Rocking Chair|Whisper|Staircase|Candle|Caretaker|Veil|Nursery|Echo",
    "Political": "Senator Ballot Whistle Filibuster Lobby Scandal Coalition Veto",
    "Submarine": "Sonar Depth Torpedo Periscope Hull Abyss Ballast Silence",
    "Circus": "Trapeze Clown Ringmaster Elephant Tent Juggler Tightrope Parade",
    "Chess": "Gambit Bishop Endgame Knight Grandmaster Stalemate Pawn Opening",
    "Beekeeping": "Hive Queen Smoker Swarm Honey Drone Clover Apiary",
}
MOODS = ("Bright", "Dark", "Odd")  # of the facets of a taste
ADJECTIVES = (
    "Last First Hidden Silent Golden Broken Distant Burning Crooked Forgotten Northern Second "
    "Invisible Quiet Borrowed Perfect Lonely Crimson Hollow Endless Secret Wild Paper Empty Blue"
)
PLACES = (
    "Marseille Lisbon Kyoto Halifax Valparaíso Tromsø Odessa Galway Zanzibar Trieste Montréal "
    "Reykjavík Oaxaca Samarkand Tangier Bergen Naples Riga Havana Dunedin"
)
NAMES = "Ada Bruno Clara Dmitri Elif Farid Greta Hana Ivo Josefa Kofi Lena Mateo Nora Otis"
PATTERNS = (
    "The {adjective} {word}",
    "{word} in {place}",
    "{name}'s {word}",
    "The {word} and the {other}",
    "{adjective} {word}, {adjective2} {other}",
    "{article} {word} for {name}",
    "The {word} of {place}",
    "Beyond the {adjective} {word}",
    "{name} and the {word}",
    "No {word} in {place}",
)
NEWEST, OLDEST = 2026, 1925
ROMAN = ("", " II", " III", " IV", " V")


def invent_titles(drawn: Synthetic) -> pa.Table:
    """Return a table of the items: item, title, genres and year; titles are all different.

    The genre is that of the taste that an item belongs to, and the mood that of its facet; items
    that belong to a second taste have its genre, too. The same data has the same titles.

    >>> invent_titles(synthetic("demo", seed=17)).to_pylist()[1]
    {'item': 1, 'title': 'The Letter of Halifax', 'genres': ['Drama', 'Dark'], 'year': 2014}
    """
    load_pandas()
    rng = np.random.default_rng(drawn.recipe.seed)
    names, facets = list(GENRES), drawn.recipe.facets
    titles: dict[str, None] = {}
    genres, years = [], []
    for home, second in zip(drawn.home.tolist(), drawn.second.tolist(), strict=True):
        genre = names[home // facets % len(names)]
        tags = [genre, MOODS[home % facets % len(MOODS)], names[second // facets % len(names)]]
        genres.append(list(dict.fromkeys(tags)))
        years.append(max(int(NEWEST - rng.gamma(2.0, 14.0)), OLDEST))
        titles[_new_title(genre, titles, rng)] = None
    columns = {
        "item": pa.array(np.arange(len(titles))),
        "title": pa.array(list(titles)),
        "genres": pa.array(genres, pa.list_(pa.string())),
        "year": pa.array(years, pa.int32()),
    }
    return pa.table(columns)


def _new_title(genre: str, taken: dict[str, None], rng: np.random.Generator) -> str:
    """Draw a title that is not taken; a sequel if all that were drawn are."""
    while True:
        word, other = rng.choice(_words(GENRES[genre]), 2, replace=False)
        adjective, second = rng.choice(_words(ADJECTIVES), 2, replace=False)
        title = PATTERNS[rng.integers(len(PATTERNS))].format(
            article="An" if word[0] in "AEIOU" else "A",
            word=word,
            other=other,
            adjective=adjective,
            adjective2=second,
            place=rng.choice(_words(PLACES)),
            name=rng.choice(_words(NAMES)),
        )
        for number in ROMAN:
            if title + number not in taken:
                return title + number


def _words(text: str) -> list[str]:
    return text.split("|") if "|" in text else text.split()
