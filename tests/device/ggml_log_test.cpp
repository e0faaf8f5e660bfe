#include "device/ggml_log.h"

#include "gguf.h"

#include <gtest/gtest.h>

namespace knap::ggml_log_test {
namespace {

void provoke_error() {
    const char bytes[] = "not a GGUF file";
    EXPECT_EQ(gguf_init_from_buffer(bytes, sizeof(bytes), {true, nullptr}), nullptr);
}

TEST(GgmlErrorCapture, ReportsTheFirstErrorWithoutTheFunctionName) {
    const GgmlErrorCapture errors;
    provoke_error();
    EXPECT_EQ(errors.reason(), "invalid magic characters: 'not ', expected 'GGUF'");
}

TEST(GgmlErrorCapture, ReportsWhenThereWasNoError) {
    EXPECT_EQ(GgmlErrorCapture().reason(), "no reason given");
}

TEST(GgmlErrorCapture, InnermostCaptureReceivesTheError) {
    const GgmlErrorCapture outer;
    {
        const GgmlErrorCapture inner;
        provoke_error();
        EXPECT_NE(inner.reason(), "no reason given");
    }
    EXPECT_EQ(outer.reason(), "no reason given");
    provoke_error();
    EXPECT_NE(outer.reason(), "no reason given");
}

TEST(CudaGraphs, AreCountedFromTheLog) {
    install_ggml_log();
    ggml_log_callback log = nullptr;
    void* data = nullptr;
    ggml_log_get(&log, &data);
    const CudaGraphStatistics before = logged_cuda_graphs();
    log(GGML_LOG_LEVEL_DEBUG, "ggml_backend_cuda_graph_compute: CUDA graph warmup complete\n",
        data);
    log(GGML_LOG_LEVEL_DEBUG, "ggml_backend_cuda_graph_compute: CUDA graph warmup complete\n",
        data);
    log(GGML_LOG_LEVEL_DEBUG, "ggml_backend_cuda_graph_compute: CUDA graph warmup reset\n", data);
    log(GGML_LOG_LEVEL_DEBUG, "something else\n", data);
    EXPECT_EQ(logged_cuda_graphs().captured - before.captured, 2);
    EXPECT_EQ(logged_cuda_graphs().reset - before.reset, 1);
}

}  // namespace
}  // namespace knap::ggml_log_test
