"""One server process for a module, with the flags that the module names in FLAGS.

Every run has a cache folder of its own: what servers draft follows from what others have measured and learned there.
"""

import os
import tempfile

import pytest

from served import Served

cache = tempfile.TemporaryDirectory(prefix="knap-serve-")
os.environ["KNAP_CACHE_DIR"] = cache.name


def pytest_unconfigure():
    cache.cleanup()


@pytest.fixture(scope="module")
def server(request):
    served = Served(*getattr(request.module, "FLAGS", []))
    yield served
    assert served.stop() == 0, served.output


@pytest.fixture
def client(server):
    import openai

    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)
