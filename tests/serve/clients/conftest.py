"""One server process for a module, with the flags that the module names in FLAGS."""

import pytest

from served import Served


@pytest.fixture(scope="module")
def server(request):
    served = Served(*getattr(request.module, "FLAGS", []))
    yield served
    assert served.stop() == 0, served.output


@pytest.fixture
def client(server):
    import openai

    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)
