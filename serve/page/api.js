// Asks the server that this page came from.

// The key lives until the tab is closed. Without one the browser sends the credentials, if any,
// that it asked for when it loaded the page.
export const apiKey = {
  get: () => sessionStorage.getItem("knap.key") || "",
  set: key => key ? sessionStorage.setItem("knap.key", key) : sessionStorage.removeItem("knap.key"),
};

export class ApiError extends Error {
  constructor(status, message) {
    super(status === 401 ? "The server wants an API key: see the settings." : message);
    this.status = status;
  }
}

async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (apiKey.get()) {
    headers.Authorization = `Bearer ${apiKey.get()}`;
  }
  const response = await fetch(path, { ...options, headers });
  if (!response.ok) {
    const body = await response.json().catch(() => null);
    throw new ApiError(response.status, body?.error?.message || `the server answered ${response.status}`);
  }
  return response;
}

export const getJson = async path => (await request(path)).json();
export const getText = async path => (await request(path)).text();

// The data of server-sent events, one string an event.
export async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return;
      }
      const parts = (text + value).split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const lines = part.split("\n").filter(line => line.startsWith("data:"));
        if (lines.length > 0) {  // else a comment: the server says that it is alive
          yield lines.map(line => line.slice(5).trimStart()).join("\n");
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// The chunks of an answer. Throws when the stream ends before the answer does.
export async function* streamChat(body, signal) {
  const response = await request("v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  for await (const data of events(response.body)) {
    if (data === "[DONE]") {
      return;
    }
    const chunk = JSON.parse(data);
    if (chunk.error) {
      throw new ApiError(500, chunk.error.message);
    }
    yield chunk;
  }
  throw new Error("the connection was closed before the answer was complete");
}
