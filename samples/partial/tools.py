from pathlib import Path

from pysandboxes import sandbox


@sandbox
def count_words(path: str) -> int:
    return len(Path(path).read_text().split())
