"""The array types, by what they hold."""

import numpy as np
from numpy.typing import NDArray

# One row a record, one column an attribute, in the schema's order. Columns are contiguous
# (Fortran order): every kernel walks down columns.
CODE = np.uint16
Codes = NDArray[np.uint16]

Counts = NDArray[np.int64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Reals = NDArray[np.float64]
Words = NDArray[np.uint64]
HalfWords = NDArray[np.uint32]

# One code is spent on no value at all, so that every domain fits with room for "missing".
MOST_VALUES = 2**16 - 1
