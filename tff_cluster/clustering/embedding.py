"""Coordinates and a quality measure from distances or inner products alone."""

import numpy as np
from sklearn import metrics

from tff_cluster.assignment import ClusterAssignment


def classical_scaling(distances: np.ndarray, dimensions: int = 2) -> np.ndarray:
  """Returns points whose Euclidean distances are as near to the given ones as their number allows (Torgerson 1952).

  Args:
    distances: float64[clients, clients], symmetric, zero diagonal.
    dimensions: Number of coordinates.

  Returns:
    float64[clients, dimensions], axes by falling spread, mean 0; the coordinate of largest magnitude of each
    axis is positive. Axes that the distances do not span are 0.
  """
  squared = np.asarray(distances, np.float64) ** 2
  gram = -0.5 * (squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean())
  points = np.zeros((len(squared), dimensions))
  found = gram_coordinates(gram)[:, :dimensions]
  points[:, : found.shape[1]] = found
  return points


def gram_coordinates(gram: np.ndarray) -> np.ndarray:
  """Returns points with these inner products, where the matrix is positive semidefinite.

  Args:
    gram: float64[clients, clients], symmetric, inner products about the mean.

  Returns:
    float64[clients, rank], axes by falling spread, signs as in `classical_scaling`; negative eigenvalues, and
    what is rounding beside the largest one, are left out.
  """
  values, axes = np.linalg.eigh((gram + gram.T) / 2.0)
  values, axes = values[::-1], axes[:, ::-1]
  kept = values > max(values[0], 0.0) * len(gram) * np.finfo(np.float64).eps
  points = axes[:, kept] * np.sqrt(values[kept])
  # The magnitudes are rounded, so that two mirror images do not leave the choice to the last bit.
  magnitude = np.abs(points)
  largest = np.argmax(np.round(magnitude / np.maximum(magnitude.max(axis=0, initial=0.0), 1e-300), 6), axis=0)
  return points * np.where(points[largest, np.arange(points.shape[1])] < 0.0, -1.0, 1.0)


def silhouette(distances: np.ndarray, assignment: ClusterAssignment) -> float | None:
  """Returns the mean silhouette (Rousseeuw 1987), -1 to 1, or None where it is undefined.

  It is undefined when clients are in several clusters, when there is one cluster, and when every client is
  alone.

  Args:
    distances: float64[clients, clients].
    assignment: The clustering of these clients.
  """
  if assignment.is_overlapping or not 2 <= assignment.num_clusters < assignment.num_clients:
    return None
  return float(metrics.silhouette_score(distances, assignment.labels, metric='precomputed'))
