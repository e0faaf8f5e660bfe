// Memory that runs out: every allocation of a piece of work fails in turn, the first, then the
// second, and so on in growing steps. What was asked for either succeeds or throws, nothing stays
// behind, and the next request gets the text of plain decoding.
//
// This is a program of its own because it replaces operator new, for all libraries of the process:
// libllama's allocations fail as well. malloc is left alone: ggml aborts where it fails, and
// nothing of knap's calls it. Only the thread that works is affected, and only while it works. What
// reads or writes JSON is left out: the library for it ends the process where memory is short,
// because it allocates in destructors and in comparisons that must not throw.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <string_view>
#include <thread>

#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>

#include "knap/chat.h"
#include "knap/knap.h"

#include "base/partial_file.h"
#include "support/baseline.h"
#include "support/environment_variable.h"
#include "support/loaded_model.h"
#include "support/strategy_cases.h"
#include "support/tiny_model.h"
#include "text/chat_models.h"

namespace {

thread_local long n_until_failure = 0;  // 0: none fails
thread_local long n_failed = 0;
thread_local bool goes_on_failing = false;

// Functions of other libraries that leave something broken behind when they cannot allocate, and
// knap could do nothing about it: the beginnings of their mangled names.
constexpr std::array<std::string_view, 1> kUnsafe{
    "_ZNSt10filesystem7__cxx114path",  // libstdc++ 12: the parts of a path that was not joined
};

bool is_unsafe(std::string_view function) {
    return std::ranges::any_of(
        kUnsafe, [&](std::string_view beginning) { return function.starts_with(beginning); });
}

// Whether one of the innermost functions is.
bool is_inside_unsafe() {
    std::array<void*, 24> frames;
    const int n_frames = backtrace(frames.data(), static_cast<int>(frames.size()));
    return std::any_of(frames.begin(), frames.begin() + n_frames, [](void* frame) {
        Dl_info info{};
        return dladdr(frame, &info) != 0 && info.dli_sname != nullptr && is_unsafe(info.dli_sname);
    });
}

bool is_due() {
    if (n_until_failure == 0 || --n_until_failure > 0) {
        return false;
    }
    n_until_failure = 0;
    const bool fails = !is_inside_unsafe();  // else the next one does
    n_failed += fails ? 1 : 0;
    n_until_failure = fails && !goes_on_failing ? 0 : 1;
    return fails;
}

void* allocate(std::size_t n_bytes, std::size_t alignment = 0) {
    if (is_due()) {
        return nullptr;
    }
    if (alignment == 0) {
        return std::malloc(std::max<std::size_t>(1, n_bytes));
    }
    return std::aligned_alloc(alignment, (n_bytes + alignment - 1) / alignment * alignment);
}

void* checked(void* memory) {
    return memory == nullptr ? throw std::bad_alloc() : memory;
}

}  // namespace

void* operator new(std::size_t n) {
    return checked(allocate(n));
}
void* operator new[](std::size_t n) {
    return checked(allocate(n));
}
void* operator new(std::size_t n, std::align_val_t alignment) {
    return checked(allocate(n, static_cast<std::size_t>(alignment)));
}
void* operator new[](std::size_t n, std::align_val_t alignment) {
    return checked(allocate(n, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
    return allocate(n);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
    return allocate(n);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}

namespace knap::test::failing_allocations {
namespace {

namespace fs = std::filesystem;

enum class Failures { one, all_from_there };

// While it lives, the n-th allocation of this thread fails, from 1, and perhaps all later ones.
class FailingAllocation {
  public:
    FailingAllocation(long n, Failures failures) {
        n_failed = 0;
        goes_on_failing = failures == Failures::all_from_there;
        n_until_failure = n;
    }
    ~FailingAllocation() { n_until_failure = 0; }
    FailingAllocation(const FailingAllocation&) = delete;
    FailingAllocation& operator=(const FailingAllocation&) = delete;

    bool has_failed() const { return n_failed > 0; }
};

int count_threads() {
    return static_cast<int>(
        std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

// Tries `work` until no allocation of it fails, and calls `check` whenever one has. `gain` is by
// how much the number of the allocation grows, at least by 1.
void survive(const std::function<void()>& work,
             const std::function<void()>& check,
             double gain = 0.1) {
    for (const Failures failures : {Failures::one, Failures::all_from_there}) {
        long n = 1;
        int n_thrown = 0;
        for (bool has_failed = true; has_failed;
             n += std::max(1L, static_cast<long>(gain * static_cast<double>(n)))) {
            SCOPED_TRACE(testing::Message() << "allocation " << n);
            bool has_thrown = false;
            {
                const FailingAllocation failing(n, failures);
                try {
                    work();
                } catch (const std::exception&) {
                    has_thrown = true;
                }
                has_failed = failing.has_failed();
            }
            EXPECT_TRUE(has_failed || !has_thrown) << "threw without a reason";
            n_thrown += has_thrown ? 1 : 0;
            check();
            if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) {
                return;
            }
        }
        EXPECT_GT(n_thrown, 0) << "nothing allocates";
    }
}

class EveryAllocation : public testing::Test {
  protected:
    EveryAllocation() { fs::create_directories(cache_); }
    ~EveryAllocation() override { fs::remove_all(cache_); }

    fs::path cache_ = temporary_folder() / "failing_allocations";
    EnvironmentVariable variable_{"KNAP_CACHE_DIR", cache_.string()};
    RuntimeConfig config_{.model_path = tiny_model("tiny-llama", "Q8_0"),
                          .n_ctx = 256,
                          .n_threads = 1,
                          .memory = true};
};

TEST_F(EveryAllocation, OfAnEngineThatLoads) {
    { const Engine first(config_); }  // what stays for the life of the process
    const int n_threads = count_threads();
    survive([&] { const Engine engine(config_); }, [&] { EXPECT_EQ(count_threads(), n_threads); });
    Engine engine(config_);
    Session session(engine);
    plain_text(session, random_tokens(20, 256, 1), {.n_predict = 8});
}

TEST_F(EveryAllocation, OfASession) {
    Engine engine(config_);
    std::vector<Token> text;
    const auto prompt = random_tokens(20, 256, 1);
    {
        Session session(engine);
        text = plain_text(session, prompt, {.n_predict = 8}).tokens;
    }
    survive([&] { const Session session(engine); },
            [&] {
                Session session(engine);
                EXPECT_EQ(plain_text(session, prompt, {.n_predict = 8}).tokens, text);
            });
}

// One after another in the same session: what failed must not change what comes.
class Generation : public testing::TestWithParam<StrategyCase> {};

TEST_P(Generation, SurvivesEveryAllocationThatFails) {
    Engine engine(config_of(GetParam()));
    Session session(engine);
    const auto prompt = prompt_of(GetParam(), engine, 40, 1);
    const auto other = prompt_of(GetParam(), engine, 40, 2);
    const GenerateOptions plain{.n_predict = 12, .speculation = plain_decoding()};
    GenerateOptions options = plain;
    options.speculation = GetParam().speculation;
    const std::map<std::vector<Token>, std::vector<Token>> texts{
        {prompt, plain_text(session, prompt, plain).tokens},
        {other, plain_text(session, other, plain).tokens}};
    survive(
        [&] {
            session.forget_strategies();
            EXPECT_EQ(session.generate(prompt, options).tokens, texts.at(prompt));
        },
        [&] {
            EXPECT_EQ(session.generate(prompt, options).tokens, texts.at(prompt));
            EXPECT_EQ(session.generate(other, options).tokens, texts.at(other));
        },
        GetParam().is_eager ? 0.5 : 0.2);
}

INSTANTIATE_TEST_SUITE_P(Strategies,
                         Generation,
                         testing::ValuesIn(strategy_cases().begin(), strategy_cases().end()),
                         [](const auto& test) { return test.param.name; });

TEST_F(EveryAllocation, OfARequestWithEverything) {
    Engine engine(config_);
    Session session(engine);
    const auto prompt = random_tokens(40, 256, 1);
    GenerateOptions options{.n_predict = 12,
                            .sampling = {.temperature = 1, .repeat_penalty = 1.1f, .seed = 3},
                            .stop = {"a stop string that never comes"},
                            .n_logprobs = 3};
    options.grammar.text = "root ::= [a-z ]*";
    options.references = {random_tokens(60, 256, 2)};
    const std::vector<Token> text = plain_text(session, prompt, options).tokens;
    ASSERT_EQ(text.size(), 12u);
    std::string shown;
    const Observer observer{.on_text = [&](std::string_view piece) { shown += piece; },
                            .on_token = [](const TokenEvent&) {},
                            .on_round = [](const RoundEvent&) {}};
    survive([&] { session.generate(prompt, options, observer); },
            [&] { EXPECT_EQ(session.generate(prompt, options).tokens, text); });
}

// A new engine with two sessions, one of which answers again and again on a thread of its own.
class TwoSessions {
  public:
    TwoSessions(const RuntimeConfig& config,
                const std::vector<Token>& prompt,
                const std::vector<Token>& text)
        : engine_(config), beside_([this, prompt, text] {
              Session beside(engine_);
              while (!is_over_) {
                  EXPECT_EQ(beside.generate(prompt, {.n_predict = 12}).tokens, text);
                  ++n_answers_;
              }
          }) {}
    ~TwoSessions() {
        is_over_ = true;
        beside_.join();
    }
    TwoSessions(const TwoSessions&) = delete;
    TwoSessions& operator=(const TwoSessions&) = delete;

    Session& session() { return session_; }
    void wait_for_an_answer() const {
        for (const int n_before = n_answers_; n_answers_ == n_before;) {
            std::this_thread::yield();
        }
    }

  private:
    Engine engine_;
    Session session_{engine_};
    std::atomic<bool> is_over_ = false;
    std::atomic<int> n_answers_ = 0;
    std::thread beside_;
};

// A session that fails, also in its first pass, must not stop the others.
TEST_F(EveryAllocation, OfASessionBesideAnother) {
    config_.n_parallel = 2;
    const auto prompt = random_tokens(40, 256, 1);
    const auto other = random_tokens(40, 256, 2);
    std::vector<Token> text;
    std::vector<Token> other_text;
    {
        Engine engine(config_);
        Session session(engine);
        text = plain_text(session, prompt, {.n_predict = 12}).tokens;
        other_text = plain_text(session, other, {.n_predict = 12}).tokens;
    }
    std::optional<TwoSessions> sessions;
    sessions.emplace(config_, other, other_text);
    survive([&] { sessions->session().generate(prompt, {.n_predict = 12}); },
            [&] {
                EXPECT_EQ(sessions->session().generate(prompt, {.n_predict = 12}).tokens, text);
                sessions->wait_for_an_answer();
                sessions.emplace(config_, other, other_text);
            });
}

TEST_F(EveryAllocation, OfIdleTime) {
    Engine engine(config_);
    Session session(engine);
    const auto prompt = random_tokens(40, 256, 1);
    const std::vector<Token> text = plain_text(session, prompt, {.n_predict = 12}).tokens;
    const auto begin = [&] {
        session.forget_strategies();
        EXPECT_EQ(session.generate(prompt, {.n_predict = 12}).tokens, text);
    };
    begin();
    survive([&] { session.use_idle_time(); }, begin);
}

TEST_F(EveryAllocation, OfAPromptCache) {
    Engine engine(config_);
    Session session(engine);
    const auto prompt = random_tokens(40, 256, 1);
    const std::vector<Token> text = plain_text(session, prompt, {.n_predict = 12}).tokens;
    const fs::path path = cache_ / "prompt.cache";
    session.save_prompt_cache(path);
    survive([&] { session.save_prompt_cache(path); },
            [&] {
                session.load_prompt_cache(path);
                EXPECT_EQ(std::distance(fs::directory_iterator(cache_), {}), 1);
                EXPECT_EQ(session.generate(prompt, {.n_predict = 12}).tokens, text);
            });
    survive([&] { session.load_prompt_cache(path); },
            [&] { EXPECT_EQ(session.generate(prompt, {.n_predict = 12}).tokens, text); });
}

TEST_F(EveryAllocation, OfTextAndTokens) {
    const Engine engine(config_);
    const std::string text = "Once upon a time <s> there was";
    const auto tokens = engine.tokenize(text, true, true);
    survive(
        [&] {
            engine.detokenize(engine.tokenize(text, true, true));
            engine.info();
        },
        [&] { EXPECT_EQ(engine.tokenize(text, true, true), tokens); });
}

TEST_F(EveryAllocation, OfAChatFormat) {
    const auto tokenizer = load_vocabulary(chat_vocabulary(kQwenTemplate));
    survive(
        [&] { make_chat_format(*tokenizer, {}); },
        [&] { EXPECT_EQ(ChatFormat(make_chat_format(*tokenizer, {})).source(), kQwenTemplate); });
}

TEST_F(EveryAllocation, OfAFile) {
    const fs::path path = cache_ / "a_file";
    write_whole_file(path, "old");
    survive([&] { write_whole_file(path, "new"); },
            [&] {
                EXPECT_EQ(std::distance(fs::directory_iterator(cache_), {}), 1);
                EXPECT_EQ(fs::file_size(path), 3u);
            });
}

}  // namespace
}  // namespace knap::test::failing_allocations
