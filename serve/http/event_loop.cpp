#include "serve/http/event_loop.h"

#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <unistd.h>

#include "base/error.h"

namespace knap {

namespace asio = boost::asio;
using boost::system::error_code;

struct EventLoop::Impl {
    asio::io_context context{1};  // one thread runs it
    asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {
    // The queue may live longer than the loop, but wakes it only until it is closed. Only the queue
    // itself needs to live until the task runs.
    tasks_ = std::make_shared<TaskQueue>([this] {
        asio::post(impl_->context, [tasks = std::weak_ptr(tasks_)] {
            if (const auto queue = tasks.lock()) {
                queue->run_all();
            }
        });
    });
}

EventLoop::~EventLoop() {
    tasks_->close();
}

void EventLoop::run() {
    impl_->context.run();
    tasks_->close();
    tasks_->run_all();
}

void EventLoop::stop() {
    impl_->context.stop();
}

struct Timer::Impl {
    asio::steady_timer timer;
    int n_starts = 0;  // a wait of an earlier start must not call back
};

Timer::Timer(EventLoop& loop)
    : impl_(std::make_shared<Impl>(Impl{asio::steady_timer(loop.impl().context)})) {}

Timer::~Timer() {
    stop();
}

void Timer::start(std::chrono::milliseconds delay, std::function<void()> callback) {
    const int start = ++impl_->n_starts;
    impl_->timer.expires_after(delay);
    impl_->timer.async_wait(
        [state = std::weak_ptr(impl_), start, callback = std::move(callback)](error_code error) {
            const auto timer = state.lock();
            if (!error && timer && timer->n_starts == start) {
                callback();
            }
        });
}

void Timer::stop() {
    ++impl_->n_starts;
    impl_->timer.cancel();
}

struct Socket::Impl {
    asio::posix::stream_descriptor descriptor;

    void wait(const std::shared_ptr<Impl>& self,
              asio::posix::descriptor_base::wait_type what,
              std::function<void()> callback) {
        descriptor.async_wait(
            what, [socket = std::weak_ptr(self), callback = std::move(callback)](error_code error) {
                const auto state = socket.lock();
                if (!error && state && state->descriptor.is_open()) {
                    callback();
                }
            });
    }
};

Socket::Socket(EventLoop& loop, int descriptor)
    : impl_(std::make_shared<Impl>(Impl{asio::posix::stream_descriptor(loop.impl().context)})),
      descriptor_(descriptor) {
    error_code error;
    impl_->descriptor.assign(descriptor, error);
    if (error) {
        ::close(descriptor);
        fail("cannot wait for a socket: ", error.message());
    }
}

Socket::~Socket() {
    close();
}

void Socket::wait_readable(std::function<void()> callback) {
    impl_->wait(impl_, asio::posix::descriptor_base::wait_read, std::move(callback));
}

void Socket::wait_writable(std::function<void()> callback) {
    impl_->wait(impl_, asio::posix::descriptor_base::wait_write, std::move(callback));
}

void Socket::close() {
    error_code ignored;
    impl_->descriptor.close(ignored);
    descriptor_ = -1;
}

}  // namespace knap
