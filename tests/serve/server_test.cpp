// The server on a small model: whole requests through sockets. Its answers are those of a session.
#include "serve/server.h"

#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/baseline.h"
#include "support/http_client.h"
#include "support/http_rig.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::server_test {
namespace {

using ::testing::HasSubstr;

class ServerTest : public ::testing::Test {
  protected:
    ServerTest() : server_({.http = {.port = 0}}), thread_([this] { server_.run(); }) {
        server_.serve(engine_, {.alias = "tiny",
                                .n_sessions = 2,
                                .n_queue = 2,
                                .defaults = {.options = {.n_predict = 12, .ignore_eos = true},
                                             .has_seed = true}});
    }
    ~ServerTest() override {
        server_.stop();
        thread_.join();
    }

    int port() const {
        return std::stoi(server_.address().substr(server_.address().rfind(':') + 1));
    }

    static Json body_with(const std::vector<Token>& tokens, const Json& more = Json::object()) {
        Json body{{"prompt", tokens}};
        body.update(more);
        return body;
    }

    HttpAnswer post(const std::string& path, const Json& body) {
        HttpClient client(port());
        return client.post(path, to_text(body));
    }

    Json answer(const std::string& path, const Json& body) {
        const HttpAnswer got = post(path, body);
        EXPECT_EQ(got.status, 200) << got.body;
        return Json::parse(got.body);
    }

    std::string plain(const std::vector<Token>& prompt, GenerateOptions options = {}) {
        options.n_predict = 12;
        options.ignore_eos = true;
        Session session(engine_);
        return plain_text(session, prompt, options).text;
    }

    Engine engine_{{.model_path = tiny_model("tiny-llama", "Q8_0"),
                    .n_ctx = 128,
                    .n_parallel = 2,
                    .n_threads = 1}};
    Server server_;
    std::thread thread_;
};

// The chunks of a stream, up to [DONE].
std::vector<Json> chunks_of(const std::string& body) {
    std::vector<Json> chunks;
    for (std::size_t at = body.find("data: "); at != body.npos; at = body.find("data: ", at + 1)) {
        const std::string line = body.substr(at + 6, body.find('\n', at) - at - 6);
        if (line == "[DONE]") {
            break;
        }
        chunks.push_back(Json::parse(line));
    }
    return chunks;
}

std::string streamed_text(const std::string& body, int choice) {
    std::string text;
    for (const Json& chunk : chunks_of(body)) {
        for (const Json& one : chunk["choices"]) {
            text += one["index"] == choice ? one["text"].get<std::string>() : "";
        }
    }
    return text;
}

std::string safe(const std::string& text) {  // as JSON can say it
    return Json::parse(to_text(Json(text))).get<std::string>();
}

TEST_F(ServerTest, AnswersAreThoseOfPlainDecoding) {
    for (unsigned seed = 0; seed < 4; ++seed) {
        const std::vector<Token> prompt = random_tokens(20, 256, seed);
        const Json whole = answer("/v1/completions", body_with(prompt));
        EXPECT_EQ(whole["choices"][0]["text"], safe(plain(prompt)));
        EXPECT_EQ(whole["choices"][0]["finish_reason"], "length");
        EXPECT_EQ(whole["usage"]["prompt_tokens"], 20);
        EXPECT_EQ(whole["usage"]["completion_tokens"], 12);
        EXPECT_EQ(whole["model"], "tiny");
    }
}

TEST_F(ServerTest, StreamsSayTheSame) {
    const std::vector<Token> prompt = random_tokens(20, 256, 3);
    const HttpAnswer stream = post("/v1/completions", body_with(prompt, {{"stream", true}}));
    EXPECT_EQ(stream.status, 200);
    EXPECT_TRUE(stream.is_complete);
    EXPECT_EQ(stream.headers.at("content-type"), "text/event-stream");
    EXPECT_EQ(streamed_text(stream.body, 0), safe(plain(prompt)));
    EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
}

// Also of tokens whose text is only a part of a character.
TEST_F(ServerTest, RoundsTellWhereEveryTokenCameFrom) {
    const HttpAnswer stream = post(
        "/v1/completions",
        body_with(random_tokens(20, 256, 3), {{"stream", true}, {"knap", {{"rounds", true}}}}));
    int n_tokens = 0;
    for (const Json& chunk : chunks_of(stream.body)) {
        if (chunk.contains("knap") && chunk["knap"].contains("tokens")) {
            n_tokens += static_cast<int>(chunk["knap"]["tokens"].size());
        }
    }
    EXPECT_EQ(n_tokens, 12);
}

TEST_F(ServerTest, RoundsWhoseTextIsHeldBackHaveTheirTimes) {
    const HttpAnswer stream =
        post("/v1/completions",
             body_with({1, 2, 3}, {{"stream", true},
                                   {"grammar", "root ::= \"😀a\""},
                                   {"ignore_eos", false},
                                   {"timings_per_token", true},
                                   {"knap", {{"rounds", true}, {"strategy", "autoregressive"}}}}));
    int n_held_back = 0;
    for (const Json& chunk : chunks_of(stream.body)) {
        if (chunk.contains("knap") && chunk["knap"].contains("tokens")) {
            EXPECT_TRUE(chunk.contains("timings")) << chunk;
            n_held_back += chunk["choices"].empty() ? 1 : 0;
        }
    }
    EXPECT_GE(n_held_back, 3) << "a byte of the character each";
}

TEST_F(ServerTest, EveryChoiceHasItsOwnSeed) {
    const std::vector<Token> prompt = random_tokens(20, 256, 5);
    const Json whole = answer("/v1/completions",
                              body_with(prompt, {{"n", 3}, {"temperature", 1.5}, {"seed", 40}}));
    ASSERT_EQ(whole["choices"].size(), 3u);
    for (unsigned k = 0; k < 3; ++k) {
        EXPECT_EQ(whole["choices"][k]["text"],
                  safe(plain(prompt, {.sampling = {.temperature = 1.5f, .seed = 40 + k}})));
    }
    EXPECT_EQ(whole["usage"]["prompt_tokens"], 20) << "a prompt counts once";
    EXPECT_EQ(whole["usage"]["completion_tokens"], 36);
    EXPECT_EQ(whole["knap"]["seed"], 40);
}

TEST_F(ServerTest, ClientsAtOnceGetTheAnswersOfClientsAlone) {
    std::vector<std::thread> clients;
    std::vector<std::string> texts(4);
    for (unsigned i = 0; i < texts.size(); ++i) {
        clients.emplace_back([&, i] {
            texts[i] = answer("/completion", body_with(random_tokens(30, 256, i)))["content"];
        });
    }
    for (std::thread& client : clients) {
        client.join();
    }
    for (unsigned i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(texts[i], safe(plain(random_tokens(30, 256, i))));
    }
}

TEST_F(ServerTest, AFullQueueRefuses) {
    const Json body = body_with(random_tokens(10, 256, 1), {{"n", 5}});
    const HttpAnswer refused = post("/v1/completions", body);
    EXPECT_EQ(refused.status, 429);
    EXPECT_THAT(refused.body, HasSubstr("queue_full"));
    EXPECT_TRUE(refused.headers.contains("retry-after"));
    EXPECT_TRUE(refused.headers.contains("retry-after-ms"));
    EXPECT_EQ(post("/v1/completions", body_with({1, 2})).status, 200);
}

TEST_F(ServerTest, AClientThatLeavesFreesItsSession) {
    HttpClient client(port());
    const std::string body =
        to_text(body_with({1, 2, 3}, {{"stream", true}, {"n_predict", 120}, {"n", 4}}));
    client.send(
        concat("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
               "application/json\r\nContent-Length: ",
               body.size(), "\r\n\r\n", body));
    client.read_until("data: ");
    client.reset();
    EXPECT_TRUE(eventually([&] {
        return server_.service()->pool.n_running() == 0 && server_.service()->pool.n_waiting() == 0;
    }));
}

TEST_F(ServerTest, BadRequestsNameTheirFault) {
    EXPECT_THAT(post("/v1/completions", {{"prompt", "x"}, {"top_k", "many"}}).body,
                HasSubstr("\"param\":\"top_k\""));
    EXPECT_EQ(post("/v1/completions", Json::array()).status, 400);
    const HttpAnswer long_prompt = post("/v1/completions", body_with(random_tokens(129, 256, 1)));
    EXPECT_EQ(long_prompt.status, 400);
    EXPECT_THAT(long_prompt.body, HasSubstr("\"code\":\"context_length_exceeded\""));
    EXPECT_THAT(long_prompt.body, HasSubstr("\"n_prompt_tokens\":129"));
    EXPECT_THAT(post("/v1/completions",
                     {{"prompt", {1}}, {"knap", {{"strategy", "static"}}}, {"stream", true}})
                    .body,
                HasSubstr("\"error\""))
        << "a strategy that refuses is an error before the stream";
    EXPECT_THAT(post("/v1/completions", {{"prompt", {1}}, {"grammar", "root ::= "}}).body,
                HasSubstr("grammar"));
}

TEST_F(ServerTest, RoutesAnswerByPathAndMethod) {
    HttpClient client(port());
    EXPECT_EQ(client.get("/health").status, 200);
    EXPECT_EQ(client.get("/v1/models").status, 200);
    EXPECT_EQ(client.get("/v1/models/tiny").status, 200);
    EXPECT_EQ(client.get("/v1/models/other").status, 404);
    EXPECT_EQ(client.get("/nothing").status, 404);
    const HttpAnswer wrong = client.get("/v1/completions");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.at("allow"), "OPTIONS, POST");
    EXPECT_THAT(client.get("/props").body, HasSubstr("\"total_slots\":2"));
    EXPECT_EQ(Json::parse(client.get("/slots").body).size(), 2u);
}

TEST_F(ServerTest, MetricsCountWhatHappened) {
    answer("/v1/completions", body_with(random_tokens(20, 256, 9)));
    HttpClient client(port());
    const std::string metrics = client.get("/metrics").body;
    EXPECT_THAT(metrics, HasSubstr("\nllamacpp:prompt_tokens_total 20\n"));
    EXPECT_THAT(metrics, HasSubstr("\nllamacpp:tokens_predicted_total 12\n"));
    EXPECT_THAT(metrics, HasSubstr("finished_reason=\"length\"} 1\n"));
    EXPECT_THAT(metrics, HasSubstr("\nknap:idle_search_seconds_total 0\n"));
    EXPECT_THAT(metrics, HasSubstr("vllm:time_to_first_token_seconds_count{model_name=\"tiny\""));
}

// Also those that HTTP finds by itself, without a handler.
TEST_F(ServerTest, RefusalsAreCountedByStatus) {
    for (const auto& [request, status] :
         {std::pair("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
          std::pair("GET /health HTTP/1.1\r\n\r\n", 400),
          std::pair("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Type: application/json\r\nContent-Length: 33554433\r\n\r\n",
                    413)}) {
        HttpClient client(port());
        client.send(request);
        const HttpAnswer refused = client.read_answer();
        EXPECT_EQ(refused.status, status);
        const std::string sample = concat("requests_refused_total{code=\"", status, "\"} 1\n");
        EXPECT_THAT(HttpClient(port()).get("/metrics").body, HasSubstr(sample)) << refused.body;
        if (status == 413) {
            EXPECT_THAT(refused.body, HasSubstr("longer than 33554432 bytes"));
        }
    }
}

TEST_F(ServerTest, ASeedIsReturnedAsItWasAskedFor) {
    for (const std::int64_t seed :
         {std::int64_t{0}, std::int64_t{-2}, std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::int64_t>::max()}) {
        const Json whole = answer("/v1/completions", body_with({1, 2}, {{"seed", seed}}));
        // As text: the library takes -2 and 2^64 - 2 for equal.
        EXPECT_EQ(to_text(whole["knap"]["seed"]), std::to_string(seed));
    }
}

TEST_F(ServerTest, TokensAndTextsAreTranslated) {
    const Json tokens = answer("/tokenize", {{"content", "abc"}, {"with_pieces", true}})["tokens"];
    std::string text;
    Json ids = Json::array();
    for (const Json& token : tokens) {
        text += token["piece"].get<std::string>();
        ids.push_back(token["id"]);
    }
    EXPECT_EQ(answer("/detokenize", {{"tokens", ids}})["content"], text);
    EXPECT_EQ(post("/detokenize", {{"tokens", {100000}}}).status, 400);
    EXPECT_EQ(post("/tokenize", Json::object()).status, 400);
}

TEST_F(ServerTest, StoppingRefusesNewRequestsAndFinishesOldOnes) {
    HttpClient running(port());
    const std::string body = to_text(body_with({1, 2, 3}, {{"stream", true}, {"n_predict", 100}}));
    running.send(
        concat("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
               "application/json\r\nContent-Length: ",
               body.size(), "\r\n\r\n", body));
    running.read_until("data: ");
    server_.stop();
    EXPECT_TRUE(running.read_until("[DONE]"));
}

TEST(ServerLoading, RequestsBeforeTheModelAreToldToWait) {
    Server server({.http = {.port = 0}});
    std::thread thread([&] { server.run(); });
    HttpClient client(std::stoi(server.address().substr(server.address().rfind(':') + 1)));
    const HttpAnswer answer = client.get("/health");
    EXPECT_EQ(answer.status, 503);
    EXPECT_TRUE(answer.headers.contains("retry-after"));
    server.stop();
    thread.join();
}

}  // namespace
}  // namespace knap::test::server_test
