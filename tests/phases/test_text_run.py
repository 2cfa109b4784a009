"""Text goes the way of images: the two languages of made-up plays are found, and telling them apart helps."""

import pytest

from tests.made_up import two_languages
from tests.programs.children import run_here

pytestmark = pytest.mark.tensorflow
