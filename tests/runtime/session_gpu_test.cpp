// Sessions on a GPU.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "base/text.h"
#include "support/gpu.h"
#include "support/loaded_model.h"
#include "support/served_together.h"
#include "support/tiny_model.h"

namespace knap::test::session_gpu_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

RuntimeConfig on_gpu() {
    return {.model_path = tiny_model("small-llama", "Q8_0"),
            .n_ctx = 256,
            .n_threads = 1,
            .devices = {ggml_backend_dev_name(gpu())}};
}

TEST(SessionOnGpu, RunsOnTheGpuByDefault) {
    KNAP_SKIP_WITHOUT_GPU();
    RuntimeConfig config = on_gpu();
    config.devices.clear();
    Engine engine(config);
    EXPECT_EQ(engine.config().devices, (std::vector<std::string>{ggml_backend_dev_name(gpu())}));
}

TEST(SessionOnGpu, FreesAllItsMemory) {
    KNAP_SKIP_WITHOUT_GPU();
    Engine engine(on_gpu());
    // Some draft with a plan while sampling, some as they would by default.
    const auto request = [&](unsigned seed) {
        Session session(engine);
        const auto prompt = random_tokens(1 + static_cast<int>(seed) % 100, 256, seed);
        GenerateOptions options{.n_predict = 8, .ignore_eos = true};
        if (seed % 2 == 1) {
            options.sampling.temperature = 0.8f;
            options.speculation = {.strategy = "static", .settings = {{"plan", "m1=skip"}}};
        }
        session.generate(prompt, options);
    };
    // ggml-cuda keeps captured graphs for ten seconds after their last use.
    const auto free_after = [&](unsigned n_requests) {
        for (unsigned i = 0; i < n_requests; ++i) {
            request(i);
        }
        std::this_thread::sleep_for(std::chrono::seconds(11));
        request(0);
        return describe(gpu()).free_bytes;
    };
    const std::size_t before = free_after(100);
    EXPECT_EQ(free_after(1000), before);
}

TEST(SessionOnGpu, CacheTypeThatGgmlDoesNotTakeIsRefused) {
    KNAP_SKIP_WITHOUT_GPU();
    RuntimeConfig config = on_gpu();
    config.kernels = Kernels::ggml;
    config.cache_type_k = CacheType::q8_0;
    EXPECT_THAT([&] { Session session(*std::make_unique<Engine>(config)); },
                ThrowsMessage<Error>(HasSubstr("expected f16 on the device")));
}

TEST(SessionOnGpu, CanBeCancelled) {
    KNAP_SKIP_WITHOUT_GPU();
    Engine engine(on_gpu());
    Session session(engine);
    int n_left = 20;
    const Observer observer{.is_cancelled = [&] { return --n_left < 0; }};
    const Result result = session.generate(random_tokens(30, 256, 1),
                                           {.n_predict = 200, .ignore_eos = true}, observer);
    EXPECT_EQ(result.stop, StopReason::cancelled);
}

// Up to as many rows as the device computes exactly share a pass. With ggml's kernels each session
// has a slot.
TEST(SessionOnGpu, SeveralWriteWhatEachWritesAlone) {
    KNAP_SKIP_WITHOUT_GPU();
    for (const Kernels kernels : {Kernels::ggml, Kernels::own}) {
        for (const char* type : {"Q8_0", "Q4_0"}) {
            SCOPED_TRACE(concat(type, kernels == Kernels::own ? ", own" : ", ggml"));
            RuntimeConfig config = on_gpu();
            config.model_path = tiny_model("small-llama", type);
            config.kernels = kernels;
            expect_texts_of_plain_decoding(config, 6, mixed_requests(16, 256));
        }
    }
}

}  // namespace
}  // namespace knap::test::session_gpu_test
