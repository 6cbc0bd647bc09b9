"""What can go wrong, as sentences.

Every error of the package is a `TensortideError`.  The sentence says what is wrong,
where (mode and label), what was expected and what came, and what to do.
"""

from __future__ import annotations

import sys
import warnings

#: What Arrow raises of its own: ArrowInvalid, ArrowTypeError, ArrowKeyError and
#: ArrowNotImplementedError are these, and dates out of Python's range overflow.
ARROW_ERRORS = (ValueError, TypeError, KeyError, NotImplementedError, OverflowError)


class TensortideError(Exception):
    """Anything that Tensortide refuses or cannot do."""


class TensortideWarning(UserWarning):
    """Something works, but hardly as it was meant."""


def warn_user(sentence: str, kind: type[Warning] = TensortideWarning) -> None:
    """Warn whoever called the package: the line that is shown is the first one outside of it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("tensortide."):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, kind, stacklevel=level)


class InputError(TensortideError, ValueError):
    """The data, a label or a parameter is not what it has to be."""


class TooFewError(InputError):
    """The first data are too few for what is asked of them; with more of them it could be done."""


class NotFittedError(TensortideError, AttributeError):
    """The model was asked before it had seen any data."""


class FileError(TensortideError, OSError):
    """A file is damaged, too new, or cannot be read or written."""


class NoDataError(FileError):
    """A data set is not on this machine."""


class SolveError(TensortideError, ArithmeticError):
    """A row's equations have no finite solution.

    The engine knows `mode` and `position` only; the estimator turns them into names
    with `named` before the error reaches the user.
    """

    def __init__(self, reason: str, *, mode: int, position: int) -> None:
        super().__init__(f"mode {mode}, position {position}: {reason}")
        self.reason = reason
        self.mode = mode
        self.position = position

    def named(self, mode: str, label: object) -> SolveError:
        """Return the same error with the mode's name and the row's label in the sentence."""
        from tensortide.wording import written

        error = SolveError(self.reason, mode=self.mode, position=self.position)
        error.args = (f"mode {mode!r}, label {written(label)}: {self.reason}",)
        return error
