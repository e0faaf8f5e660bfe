// The loop of the I/O thread: waits for sockets, timers and tasks of other threads (epoll, by Asio,
// which only event_loop.cpp includes). Timers and sockets belong to the I/O thread. Callbacks are
// called by run(), never by the function that takes them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "serve/http/task_queue.h"

namespace knap {

class EventLoop {
  public:
    EventLoop();
    ~EventLoop();  // sockets and timers are destroyed before

    void run();   // until stop(); then closes tasks() and runs those that are left
    void stop();  // on the I/O thread

    // Any thread may post, and may do so after the loop's end. What was taken before that is run.
    const std::shared_ptr<TaskQueue>& tasks() const { return tasks_; }

    struct Impl;
    Impl& impl() { return *impl_; }

  private:
    std::unique_ptr<Impl> impl_;
    std::shared_ptr<TaskQueue> tasks_;
};

// Calls back once, unless it is stopped or started again before.
class Timer {
  public:
    explicit Timer(EventLoop& loop);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    void start(std::chrono::milliseconds delay, std::function<void()> callback);
    void stop();

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

// Owns a non-blocking socket.
class Socket {
  public:
    // Closes the descriptor if it cannot be waited for, and throws.
    Socket(EventLoop& loop, int descriptor);
    ~Socket();  // closes
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int descriptor() const { return descriptor_; }  // -1: closed

    // One wait of each kind at a time. The callback may come although the socket is not ready; it
    // does not come after close().
    void wait_readable(std::function<void()> callback);
    void wait_writable(std::function<void()> callback);

    void close();

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
    int descriptor_;
};

}  // namespace knap
