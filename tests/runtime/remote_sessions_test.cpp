// Several sessions whose layers are on a worker: each has a slot in the worker's cache. Only plain
// decoding is exact there, because the rows of a pass depend on each other.
#include <gtest/gtest.h>

#include "support/remote_device.h"
#include "support/served_together.h"
#include "support/tiny_model.h"

namespace knap::test::remote_sessions_test {
namespace {

TEST(SessionsOnWorker, WriteWhatEachWritesAlone) {
    const RuntimeConfig config{.model_path = tiny_model("tiny-llama", "Q8_0"),
                               .n_ctx = 256,
                               .n_threads = 1,
                               .workers = {remote_worker()}};
    auto requests = mixed_requests(12, config.n_ctx);
    for (SharedRequest& request : requests) {
        request.options.speculation = plain_decoding();
    }
    expect_texts_of_plain_decoding(config, 4, requests);
}

}  // namespace
}  // namespace knap::test::remote_sessions_test
