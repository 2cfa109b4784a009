"""Imports what programs import, TensorFlow and TFF among it, as quietly as they do, for processes that are forked from this."""

import importlib
import os
import pkgutil
import warnings

import phases
import tff_cluster

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
for package in (tff_cluster, phases):
  for found in pkgutil.walk_packages(package.__path__, f'{package.__name__}.'):
    importlib.import_module(found.name)
