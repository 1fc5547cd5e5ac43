"""`python -m tests.golden`: store what the library does today, and print what has changed.

    python -m tests.golden                       # all records
    python -m tests.golden http.json report.txt  # some of them
    python -m tests.golden --files v0_3          # files of a version that is to be released

Files and answers of earlier versions are history: they are never written again.
"""

import sys

from tests.golden import records, today

match sys.argv[1:]:
    case ["--files", version]:
        folder = today.HERE / version
        today.write_files(folder)
        found = {file.name: today.read_file(file) for file in sorted(folder.iterdir())}
        records.write(folder / "answers.json", found)
    case names:
        for name in names or records.TODAY:
            found = records.TODAY[name]()
            path = today.HERE / name
            known = records.stored(name) if path.exists() else type(found)()
            print(*records.differences(found, known, name) or [f"{name}: as before"], sep="\n")
            records.write(path, found)
