#include "serve/service.h"

#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "support/tiny_model.h"

namespace knap::test::service_test {
namespace {

using namespace std::chrono_literals;

// As the task that started an answer, when the client has all of it and the server ends.
TEST(Service, ATaskAtWorkWhenItEndsFindsEveryMember) {
    Engine engine({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 128, .n_threads = 1});
    auto service = std::make_unique<Service>(engine, ServiceConfig{.n_sessions = 1});
    const auto call = std::make_shared<bool>(true);
    service->periodic.add([call] { return *call; });
    std::promise<void> begun;
    bool has_calls = false;
    service->tasks.post([&] {
        begun.set_value();
        std::this_thread::sleep_for(100ms);
        has_calls = call.use_count() > 1;
    });
    begun.get_future().wait();
    service.reset();
    EXPECT_TRUE(has_calls) << "what is called now and then ended before the task";
}

}  // namespace
}  // namespace knap::test::service_test
