"""Pages of studies are written without rendering their pictures, but where a test looks at them."""

from tests.made_up.rendering import rendered, unrendered

__all__ = ['rendered', 'unrendered']
