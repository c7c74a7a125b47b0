"""NumPy array types, named by their content."""

import numpy as np
from numpy.typing import NDArray

# Encoded records: one row per record, one column per attribute, in the schema's order. Columns are
# contiguous (Fortran order), because kernels iterate over columns.
CODE = np.uint16
Codes = NDArray[np.uint16]

Counts = NDArray[np.int64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Reals = NDArray[np.float64]
Words = NDArray[np.uint64]
HalfWords = NDArray[np.uint32]
# Packed indices, of 32 or of 64 bits.
Keys = NDArray[np.unsignedinteger]

# Largest number of codes of an attribute, a code for "missing" included.
MAX_DOMAIN_SIZE = 2**16 - 1
