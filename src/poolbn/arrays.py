"""What arrays hold, for annotations; their shapes are said where they are."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Positions = NDArray[np.intp]
