"""Contrast of colours by WCAG 2.1."""


def _luminance(colour):
  digits = colour.lstrip('#')
  digits = ''.join(2 * digit for digit in digits) if len(digits) == 3 else digits
  channels = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
  linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
  return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
  low, high = sorted((_luminance(one), _luminance(other)))
  return (high + 0.05) / (low + 0.05)
