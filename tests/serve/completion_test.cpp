// Requests that fail while they are answered: on the session's thread, or where the answer is
// written. Such a fault ends one request and leaves nothing behind; the next is answered.
#include "serve/completion.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/answer/text_answer.h"
#include "serve/api/error.h"
#include "support/baseline.h"
#include "support/http_rig.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::completion_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a client would have received. It outlives the exchange.
struct Received {
    std::atomic<int> status = 0;
    std::string text{};  // complete when `has_ended`
    std::atomic<bool> is_broken = false;
    std::atomic<bool> has_ended = false;
};

class RecordedExchange : public Exchange {
  public:
    RecordedExchange(std::shared_ptr<Received> received, bool fails)
        : received_(std::move(received)), fails_(fails) {}

    const HttpRequest& request() const override { return request_; }
    void respond(HttpResponse response) override {
        received_->status = response.status;
        received_->text = response.body;
        received_->has_ended = true;
    }
    void begin_stream(HttpResponse head) override { received_->status = head.status; }
    void send(std::string bytes) override { received_->text += bytes; }
    void end_stream() override { received_->has_ended = true; }
    void break_stream() override {
        received_->is_broken = true;
        received_->has_ended = true;
    }
    bool is_gone() const override { return false; }
    // Asked by the session's thread after every round.
    bool is_backlogged() const override {
        return fails_ ? throw std::runtime_error("a fault of this test") : false;
    }
    void on_gone(std::function<void()>) override {}

  private:
    const HttpRequest request_{};
    const std::shared_ptr<Received> received_;
    const bool fails_;
};

class FaultyAnswer : public TextAnswer {
  public:
    using TextAnswer::TextAnswer;
    std::vector<Json> finish(int, const JobEnd&) override {
        throw std::runtime_error("a fault of this test");
    }
};

class CompletionTest : public ::testing::Test {
  protected:
    static constexpr int kTokens = 12;
    static std::vector<Token> prompt() { return random_tokens(20, 256, 1); }

    template <typename OneAnswer = TextAnswer>
    CompletionPlan plan(bool streams, int n_choices = 1) {
        CompletionPlan made;
        made.generation.options = {.n_predict = kTokens, .ignore_eos = true};
        made.generation.streams = streams;
        made.generation.n_choices = n_choices;
        made.prompts = {prompt()};
        made.answer = std::make_unique<OneAnswer>(TextAnswerParts{
            .piece_of = [this](Token token) { return service_.piece(token); },
            .echoes = std::vector<std::string>(static_cast<std::size_t>(n_choices))});
        return made;
    }

    // Returns when the answer has ended.
    std::shared_ptr<Received> answer(CompletionPlan request, bool fails = false) {
        const auto received = std::make_shared<Received>();
        Completion::start(service_, std::make_shared<RecordedExchange>(received, fails),
                          std::move(request));
        EXPECT_TRUE(eventually([&] { return received->has_ended.load(); }));
        return received;
    }

    void expect_right_answer() {
        Session session(engine_);
        const std::string text =
            plain_text(session, prompt(), {.n_predict = kTokens, .ignore_eos = true}).text;
        const auto received = answer(plan(/*streams=*/false));
        EXPECT_EQ(received->status, 200);
        const Json whole = Json::parse(received->text);
        EXPECT_EQ(whole["choices"][0]["text"], Json::parse(to_text(Json(text))));
    }

    void expect_failed_stream(const Received& received) {
        EXPECT_EQ(received.status, 200) << "the stream had begun";
        EXPECT_TRUE(received.is_broken);
        EXPECT_THAT(received.text, HasSubstr(R"(data: {"error":{"message":)"));
        EXPECT_THAT(received.text, HasSubstr("server_error"));
        EXPECT_THAT(received.text, Not(HasSubstr("[DONE]")));
        EXPECT_THAT(received.text, Not(HasSubstr("a fault of this test")));
    }

    void expect_failed_answer(const Received& received) {
        EXPECT_EQ(received.status, 500);
        EXPECT_FALSE(received.is_broken);
        EXPECT_THAT(received.text, HasSubstr("server_error"));
        EXPECT_THAT(received.text, Not(HasSubstr("a fault of this test")));
    }

    Engine engine_{{.model_path = tiny_model("tiny-llama", "Q8_0"),
                    .n_ctx = 128,
                    .n_parallel = 2,
                    .n_threads = 1}};
    Service service_{engine_, {.n_sessions = 2, .n_queue = 2}};
};

TEST_F(CompletionTest, AJobThatFailsEndsItsRequestAlone) {
    expect_failed_stream(*answer(plan(/*streams=*/true), /*fails=*/true));
    expect_failed_answer(*answer(plan(/*streams=*/false), /*fails=*/true));
    // Of several choices the first that fails ends all of them.
    expect_failed_answer(*answer(plan(/*streams=*/false, /*n_choices=*/4), /*fails=*/true));
    expect_right_answer();
    EXPECT_TRUE(eventually([&] { return !service_.pool.is_busy(); }));
    const std::string metrics = service_.metrics.text(service_.gauges());
    EXPECT_THAT(metrics, HasSubstr("finished_reason=\"error\""));
    EXPECT_THAT(metrics, HasSubstr("knap:requests_refused_total{code=\"500\"} 3\n"));
}

TEST_F(CompletionTest, AnAnswerThatCannotBeWrittenFails) {
    expect_failed_stream(*answer(plan<FaultyAnswer>(/*streams=*/true)));
    expect_failed_answer(*answer(plan<FaultyAnswer>(/*streams=*/false)));
    expect_right_answer();
}

TEST_F(CompletionTest, ARefusedStreamLeavesNothingBehind) {
    const auto received = std::make_shared<Received>();
    auto exchange = std::make_shared<RecordedExchange>(received, /*fails=*/false);
    EXPECT_THROW(Completion::start(service_, exchange, plan(/*streams=*/true, /*n_choices=*/5)),
                 RequestError);
    EXPECT_EQ(exchange.use_count(), 1) << "the request is still in memory";
    EXPECT_EQ(received->status, 0) << "the refusal is the handler's to send";
}

}  // namespace
}  // namespace knap::test::completion_test
