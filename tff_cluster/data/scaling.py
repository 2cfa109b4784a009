"""Images in MNIST's form: scaled and grey, in whole numbers so that every machine gets the same bits."""

import numpy as np

_SIDE = 28
# ITU-R BT.601: what red, green and blue add to the luma, in thousandths.
_LUMA = np.array([299, 587, 114])
_BLOCK_ROWS = 1000


def to_mnist_size(images: np.ndarray, top: int) -> np.ndarray:
  """Scales square images to 28 x 28 by bilinear interpolation between pixel centres, without antialiasing.

  Args:
    images: int64[rows, side, side], from 0 to `top`; at least 2 x 2.
    top: What becomes 255.

  Returns:
    uint8[rows, 28, 28, 1], from 0 to 255, rounded once, halves up.
  """
  side = images.shape[1]
  unit = 2 * _SIDE
  # Centre of output pixel i in units of 1/56 input pixel: (i + 1/2) * side / 28 - 1/2.
  position = np.clip(side * (2 * np.arange(_SIDE) + 1) - _SIDE, 0, unit * (side - 1))
  low = np.minimum(position // unit, side - 2)
  weights = np.zeros((_SIDE, side), np.int64)
  weights[np.arange(_SIDE), low] = unit - (position - unit * low)
  weights[np.arange(_SIDE), low + 1] += position - unit * low
  large = np.einsum('ia,nab,jb->nij', weights, images, weights, optimize=True)
  full = unit * unit * top
  return ((2 * 255 * large + full) // (2 * full)).astype(np.uint8)[..., None]


def to_grey(images: np.ndarray) -> np.ndarray:
  """Returns the luma 0.299 R + 0.587 G + 0.114 B of colour images, scaled as by `to_mnist_size`.

  Args:
    images: uint8[rows, side, side, 3], red, green and blue.

  Returns:
    uint8[rows, 28, 28, 1], from 0 to 255; luma and scale are rounded once, together.
  """
  grey = np.empty((len(images), _SIDE, _SIDE, 1), np.uint8)
  for start in range(0, len(images), _BLOCK_ROWS):
    block = slice(start, start + _BLOCK_ROWS)
    grey[block] = to_mnist_size(images[block].astype(np.int64) @ _LUMA, 255 * 1000)
  return grey
