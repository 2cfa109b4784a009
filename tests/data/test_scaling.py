"""Scaled and grey images against SciPy's interpolation and by hand."""

import numpy as np
import pytest
from scipy import ndimage

from tff_cluster.data import scaling


def scipys(image):
  """Returns float64[28, 28], an image of any side by SciPy's bilinear interpolation between pixel centres."""
  centres = (np.arange(28) + 0.5) * len(image) / 28 - 0.5
  return ndimage.map_coordinates(
    image.astype(float), np.meshgrid(centres, centres, indexing='ij'), order=1, mode='nearest'
  )


@pytest.mark.parametrize('side', [2, 8, 28, 45])
def test_scaled_images_are_those_of_scipy_to_half_a_step(side):
  images = np.random.default_rng(side).integers(0, 17, size=(3, side, side))
  scaled = scaling.to_mnist_size(images, 16)
  assert scaled.shape == (3, 28, 28, 1) and scaled.dtype == np.uint8
  for image, ours in zip(images, scaled, strict=True):
    assert np.abs(ours[:, :, 0] - scipys(image) * 255 / 16).max() <= 0.5 + 1e-9


def test_grey_is_luma_scaled_and_rounded_once():
  # More rows than are worked on at once.
  images = np.random.default_rng(1).integers(0, 256, size=(1003, 32, 32, 3), dtype=np.uint8)
  grey = scaling.to_grey(images)
  assert grey.shape == (1003, 28, 28, 1) and grey.dtype == np.uint8
  for row in (0, 999, 1000, 1002):
    luma = images[row].astype(np.float64) @ [0.299, 0.587, 0.114]
    assert np.abs(grey[row, :, :, 0] - scipys(luma)).max() <= 0.5 + 1e-9


@pytest.mark.parametrize(
  ('colour', 'luma'),
  # 0.299 * 255 = 76.2, 0.587 * 255 = 149.7, 0.114 * 255 = 29.1; 0.5 exactly is rounded up.
  [((255, 0, 0), 76), ((0, 255, 0), 150), ((0, 0, 255), 29), ((255,) * 3, 255), ((0,) * 3, 0), ((0, 1, 250), 29), ((10, 20, 30), 18)],
)  # fmt: skip
def test_plain_colours_by_hand(colour, luma):
  grey = scaling.to_grey(np.full((1, 32, 32, 3), colour, np.uint8))
  assert (grey == luma).all()
