"""LangChain's ChatOpenAI: an answer, a stream, a tool, structured output."""

import pathlib

import langchain_core.tools
import pydantic
import pytest
from langchain_openai import ChatOpenAI

FLAGS = ["--chat-template-file", str(pathlib.Path(__file__).with_name("tools.jinja"))]


class Colour(pydantic.BaseModel):
    """A colour."""

    name: str = pydantic.Field(max_length=10)
    is_warm: bool


@langchain_core.tools.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@pytest.fixture
def model(server):
    return ChatOpenAI(base_url=server.url + "/v1", api_key="none", model="any", temperature=0, max_tokens=60, max_retries=0)


def test_answer_and_stream(model):
    answer = model.invoke("Name three colours.")
    assert answer.content and answer.usage_metadata["output_tokens"] > 0
    assert "".join(part.content for part in model.stream("Name three colours.")) == answer.content


def test_tool(model):
    answer = model.bind_tools([add], tool_choice="add").invoke("Add 2 and 3.")
    assert [call["name"] for call in answer.tool_calls] == ["add"]
    assert set(answer.tool_calls[0]["args"]) == {"a", "b"}


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(model, method):
    assert isinstance(model.with_structured_output(Colour, method=method).invoke("Name a colour."), Colour)
