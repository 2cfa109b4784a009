"""Lets torchvision be imported beside a PyTorch without CUDA; import this first.

torchvision's common wheel is built for PyTorch with CUDA. Beside one without, its operators are missing, and its
import fails over the two below, which nobody here calls.
"""

import torch

if torch.version.cuda is None:
  LIBRARY = torch.library.Library('torchvision', 'FRAGMENT')
  for _name in ('nms', 'qnms'):
    LIBRARY.define(f'{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')
