// An engine whose layers are on several devices writes what it writes on one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "runtime/engine_impl.h"
#include "runtime/files/machine_fingerprint.h"
#include "support/baseline.h"
#include "support/loaded_model.h"
#include "support/tiny_adapter.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::split_engine_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

RuntimeConfig config_of(const std::vector<std::string>& devices) {
    return {.model_path = tiny_model("tiny-llama", "Q8_0"),
            .adapter_path = write_tiny(tiny_adapter(), "split-adapter.gguf"),
            .n_ctx = 256,
            .n_threads = 1,
            .devices = devices,
            .profile = "none"};
}

// The tokens of an answer, on a new session.
std::vector<Token> answer(Engine& engine, const SpeculationOptions& speculation) {
    Session session(engine);
    return session
        .generate(random_tokens(60, 256, 1),
                  {.n_predict = 40, .speculation = speculation, .ignore_eos = true})
        .tokens;
}

std::vector<Token> plain_answer(Engine& engine) {
    Session session(engine);
    return plain_text(session, random_tokens(60, 256, 1), {.n_predict = 40, .ignore_eos = true})
        .tokens;
}

TEST(SplitEngines, SayWhatOneDeviceSays) {
    Engine whole(config_of({"CPU"}));
    Engine split(config_of({"CPU", "CPU"}));
    ASSERT_EQ(impl_of(split).layers().shares().size(), 2u);
    EXPECT_EQ(split.config().devices, (std::vector<std::string>{"CPU", "CPU"}));
    EXPECT_EQ(whole.config().devices, (std::vector<std::string>{"CPU"}));
    const std::vector<Token> plain = plain_answer(whole);
    EXPECT_EQ(plain_answer(split), plain);
    for (const char* strategy :
         {"lookup", "knapspec", "clasp", "layerskip", "kangaroo", "del", "swift"}) {
        EXPECT_EQ(answer(split, {.strategy = strategy}), plain) << strategy;
    }
    const SpeculationOptions plan{.strategy = "static",
                                  .settings = {{"plan", "a=w4+16,m1=skip,head=reduced"}}};
    EXPECT_EQ(answer(split, plan), plain);
}

TEST(SplitEngines, TakeUpThePromptsOfOneDevice) {
    Engine whole(config_of({"CPU"}));
    Engine split(config_of({"CPU", "CPU", "CPU"}));
    const auto file = temporary_folder() / "split-prompt.bin";
    const auto prompt = random_tokens(60, 256, 1);
    const GenerateOptions options{.n_predict = 20, .ignore_eos = true};
    Session first(whole);
    const auto expected = plain_text(first, prompt, options);
    first.save_prompt_cache(file);
    Session second(split);
    second.load_prompt_cache(file);
    const auto result = plain_text(second, prompt, options);
    EXPECT_EQ(result.n_prompt_reused, 59);
    EXPECT_EQ(result.tokens, expected.tokens);
}

TEST(SplitEngines, CanBeCancelled) {
    Engine split(config_of({"CPU", "CPU"}));
    Session session(split);
    const Result result = session.generate(random_tokens(60, 256, 1), {.n_predict = 40},
                                           {.is_cancelled = [] { return true; }});
    EXPECT_EQ(result.stop, StopReason::cancelled);
}

TEST(SplitEngines, AreOtherMachinesToAProfile) {
    const Engine whole(config_of({"CPU"}));
    const Engine split(config_of({"CPU", "CPU"}));
    EXPECT_NE(machine_fingerprint(impl_of(split)).hash(),
              machine_fingerprint(impl_of(whole)).hash());
}

TEST(SplitEngines, NeedDevicesAndLayersThatThereAre) {
    EXPECT_THAT(
        [] {
            Engine engine(config_of({"CPU", "GPU9"}));
        },
        ThrowsMessage<Error>(HasSubstr("`.devices`: expected one of")));
    RuntimeConfig negative = config_of({"CPU"});
    negative.n_gpu_layers = -2;
    EXPECT_THAT([&] { Engine engine(negative); },
                ThrowsMessage<Error>(HasSubstr("`.n_gpu_layers`: expected at least 0 layers")));
}

TEST(SplitEngines, WaitForWorkersForADayAtMost) {
    for (const int seconds : {-1, kMaxWorkerTimeoutSeconds + 1}) {
        RuntimeConfig config = config_of({"CPU"});
        config.worker_timeout_s = seconds;
        EXPECT_THAT(
            [&] { Engine engine(config); },
            ThrowsMessage<Error>(HasSubstr("`.worker_timeout_s`: expected 0 to 86400 seconds")));
    }
}

}  // namespace
}  // namespace knap::test::split_engine_test
