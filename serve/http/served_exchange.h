// The Exchange of a Connection: hands every call to the I/O thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/http/exchange.h"
#include "serve/http/task_queue.h"

namespace knap {

class Connection;

// What exchange and connection share.
struct ExchangeState {
    std::atomic<bool> is_gone = false;
    std::atomic<std::size_t> n_unsent = 0;  // bytes given to send() and not yet taken by the socket

    // Of the I/O thread.
    bool is_complete = false;  // the whole answer was given
    std::vector<std::function<void()>> gone_callbacks{};

    void complete();   // drops the callbacks
    void mark_gone();  // calls them, if the answer is not complete
};

class ServedExchange : public Exchange {
  public:
    ServedExchange(HttpRequest request,
                   std::shared_ptr<ExchangeState> state,
                   std::weak_ptr<Connection> connection,
                   std::shared_ptr<TaskQueue> tasks,
                   std::size_t unsent_limit);
    ~ServedExchange() override;

    const HttpRequest& request() const override { return request_; }
    void respond(HttpResponse response) override;
    void begin_stream(HttpResponse head) override;
    void send(std::string bytes) override;
    void end_stream() override;
    void break_stream() override;
    bool is_gone() const override { return state_->is_gone; }
    bool is_backlogged() const override { return state_->n_unsent > unsent_limit_; }
    void on_gone(std::function<void()> callback) override;

  private:
    enum class Phase { waiting, streaming, answered };

    void enter(Phase next, Phase expected);
    void post(std::function<void(Connection&, const ExchangeState&)> action);

    const HttpRequest request_;
    const std::shared_ptr<ExchangeState> state_;
    const std::weak_ptr<Connection> connection_;
    const std::shared_ptr<TaskQueue> tasks_;
    const std::size_t unsent_limit_;
    std::atomic<Phase> phase_ = Phase::waiting;
};

}  // namespace knap
