"""Numbers of the paper, and of its authors' code, to compare ours with."""

from safecf.errors import choose

Column = tuple[str, float]  # a metric, and a tail level: the share of worst-off users, 1 for all

# The cutoffs of Table 1, for all users and for the worst-off 30 %. Gowalla is not in the paper; its
# number of items is like that of MSD.
CUTOFFS = {"ml-1m": (20, 50), "ml-20m": (50, 100), "msd": (50, 100), "gowalla": (50, 100)}

TABLE_1 = {
    "ml-1m": {
        "iALS": (0.3450, 0.4697, 0.1166, 0.2391),
        "Mult-VAE": (0.3329, 0.4539, 0.1106, 0.2245),
        "ERM-MF": (0.3448, 0.4700, 0.1189, 0.2315),
        "CVaR-MF": (0.3318, 0.4495, 0.1061, 0.2257),
        "SAFER2": (0.3517, 0.4804, 0.1279, 0.2428),
    },
    "ml-20m": {
        "iALS": (0.5263, 0.6448, 0.2085, 0.3264),
        "Mult-VAE": (0.5313, 0.6565, 0.2091, 0.3376),
        "ERM-MF": (0.5275, 0.6441, 0.2088, 0.3251),
        "CVaR-MF": (0.5031, 0.6277, 0.1975, 0.3187),
        "SAFER2": (0.5308, 0.6501, 0.2152, 0.3342),
    },
    "msd": {
        "iALS": (0.3590, 0.4604, 0.0963, 0.1684),
        "Mult-VAE": (0.3482, 0.4347, 0.0854, 0.1485),
        "ERM-MF": (0.3544, 0.4540, 0.0945, 0.1644),
        "CVaR-MF": (0.3234, 0.4121, 0.0781, 0.1412),
        "SAFER2": (0.3585, 0.4605, 0.0983, 0.1700),
    },
}

# The same columns from the authors' C++ with their settings: means of 3 to 10 seeds, whose standard
# deviation is 0.001 to 0.003.
CODE = {
    "ml-1m": {
        "iALS": (0.3459, 0.4710, 0.1168, 0.2364),
        "iALS++": (0.3447, 0.4712, 0.1151, 0.2369),
        "ERM-MF": (0.3473, 0.4655, 0.1181, 0.2254),
        "CVaR-MF": (0.3330, 0.4560, 0.1086, 0.2318),
        "SAFER2": (0.3524, 0.4797, 0.1269, 0.2437),
        "SAFER2, Epanechnikov": (0.3517, 0.4742, 0.1267, 0.2356),
        "SAFER2++": (0.3529, 0.4813, 0.1266, 0.2482),
    },
}

# Users, items and interactions in Table 1. Those of ML-1M are not the numbers of users and films
# with ratings >= 4 in its files.
STATISTICS = {
    "ml-1m": ("6,168", "2,811", "0.56 M"),
    "ml-20m": ("136,677", "20,108", "9.54 M"),
    "msd": ("571,355", "41,140", "33.6 M"),
}

# Table 2: seconds per epoch on 96 cores (Mult-VAE: a P100 GPU), d = 256 and 512.
TABLE_2 = {
    "ml-20m": {"iALS": 3.16, "Mult-VAE": 9.06, "CVaR-MF": 1.67, "SAFER2": 3.45},
    "msd": {"iALS": 53.5, "Mult-VAE": 112.5, "CVaR-MF": 25.2, "SAFER2": 57.0},
}
RUNTIME_MACHINE = "Intel Xeon at 2.00 GHz, 96 cores, 86.4 GB; Mult-VAE on an NVIDIA P100"


def columns(data: str) -> list[Column]:
    """Return the four columns of Table 1; those of ML-1M for data that it does not have."""
    low, high = CUTOFFS.get(data, CUTOFFS["ml-1m"])
    return [(f"recall@{k}", level) for level in (1.0, 0.3) for k in (low, high)]


def reported(data: str, source: str = "paper") -> dict[str, dict[Column, float]]:
    """Return the numbers of the "paper", or of the authors' "code", by model and column."""
    tables = choose("source", source, {"paper": TABLE_1, "code": CODE})
    found = tables.get(data, {})
    return {
        model: dict(zip(columns(data), numbers, strict=True)) for model, numbers in found.items()
    }
