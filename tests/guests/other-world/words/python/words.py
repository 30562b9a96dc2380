"""The world `words`, with what componentize-py makes of it and no other library."""

from componentize_py_types import Err
from wit_world import WitWorld as World


class WitWorld(World):
    def count(self, text: str) -> int:
        return len(text.split())

    def longest(self, words: list[str]) -> str | None:
        return max(words, key=len, default=None)

    def divide(self, a: int, b: int) -> int:
        if b == 0:
            raise Err(f"{a} is not divided by 0")
        return a // b
