"""Results that were tuples once: their old use works for one more version, with a warning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from tensortide.errors import warn_user


class FormerTuple:
    """A result with names; positions and unpacking still work, and say what to write instead.

    `_former` lists the names in the order that the tuple had.
    """

    __slots__ = ()
    _former: ClassVar[tuple[str, ...]] = ()

    def __iter__(self) -> Iterator[Any]:
        """Unpack in the former order."""
        self._warn(self._advice())
        return iter(self._values())

    def __getitem__(self, index: Any) -> Any:
        """Return what stood at a position."""
        chosen = self._former[index]
        names = ", ".join(f".{n}" for n in ([chosen] if isinstance(chosen, str) else chosen))
        place = "a slice" if isinstance(index, slice) else f"[{index}]"
        self._warn(f"write {names or 'names'} in place of {place}")
        return self._values()[index]

    def __len__(self) -> int:
        """Return the length of the former tuple."""
        self._warn(self._advice())  # the same words: list(result) asks for its length first
        return len(self._former)

    def __bool__(self) -> bool:
        """Be true, as tuples with something in them are, without a word about their length."""
        return True

    def __eq__(self, other: object) -> bool:
        """Compare with a tuple as before; with anything else by identity."""
        if isinstance(other, tuple):
            self._warn("compare its attributes in place of a tuple")
            return self._values() == other
        return self is other

    __hash__ = object.__hash__

    def _advice(self) -> str:
        return f"write {', '.join(f'.{n}' for n in self._former)} in place of unpacking it"

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._former)

    def _warn(self, advice: str) -> None:
        name = type(self).__name__
        sentence = f"{name} is no tuple any more: {advice}; the next version will refuse it."
        warn_user(sentence, DeprecationWarning)
