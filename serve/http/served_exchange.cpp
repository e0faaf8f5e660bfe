#include "serve/http/served_exchange.h"

#include <exception>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "serve/http/connection.h"

namespace knap {

void ExchangeState::complete() {
    is_complete = true;
    gone_callbacks.clear();
}

void ExchangeState::mark_gone() {
    is_gone = true;
    for (const auto& callback : std::exchange(gone_callbacks, {})) {
        try {
            callback();
        } catch (const std::exception& error) {
            log_warning("server: a callback failed: ", error.what());
        }
    }
}

ServedExchange::ServedExchange(HttpRequest request,
                               std::shared_ptr<ExchangeState> state,
                               std::weak_ptr<Connection> connection,
                               std::shared_ptr<TaskQueue> tasks,
                               std::size_t unsent_limit)
    : request_(std::move(request)),
      state_(std::move(state)),
      connection_(std::move(connection)),
      tasks_(std::move(tasks)),
      unsent_limit_(unsent_limit) {}

ServedExchange::~ServedExchange() {
    if (phase_ != Phase::answered) {
        post([](Connection& connection, const ExchangeState& state) { connection.abandon(state); });
    }
}

void ServedExchange::enter(Phase next, Phase expected) {
    const Phase found = phase_.exchange(next);
    KNAP_ASSERT(found == expected, "an exchange has one answer: whole, or a stream that ends once");
}

void ServedExchange::post(std::function<void(Connection&, const ExchangeState&)> action) {
    // Refused after the server's end, when nobody is left to answer.
    (void)tasks_->post([connection = connection_, state = state_, action = std::move(action)] {
        if (const auto target = connection.lock()) {
            target->guard([&] { action(*target, *state); });
        }
    });
}

void ServedExchange::respond(HttpResponse response) {
    enter(Phase::answered, Phase::waiting);
    post([response = std::move(response)](Connection& connection, const ExchangeState& state) {
        connection.respond(state, response);
    });
}

void ServedExchange::begin_stream(HttpResponse head) {
    enter(Phase::streaming, Phase::waiting);
    post([head = std::move(head)](Connection& connection, const ExchangeState& state) {
        connection.begin_stream(state, head);
    });
}

void ServedExchange::send(std::string bytes) {
    KNAP_ASSERT(phase_ == Phase::streaming, "parts are sent between begin_stream and its end");
    if (bytes.empty() || is_gone()) {
        return;
    }
    state_->n_unsent += bytes.size();
    post([bytes = std::move(bytes)](Connection& connection, const ExchangeState& state) {
        connection.send(state, bytes);
    });
}

void ServedExchange::end_stream() {
    enter(Phase::answered, Phase::streaming);
    post([](Connection& connection, const ExchangeState& state) {
        connection.end_stream(state, true);
    });
}

void ServedExchange::break_stream() {
    enter(Phase::answered, Phase::streaming);
    post([](Connection& connection, const ExchangeState& state) {
        connection.end_stream(state, false);
    });
}

void ServedExchange::on_gone(std::function<void()> callback) {
    const auto add = [state = state_, callback] {
        if (state->is_gone && !state->is_complete) {
            callback();
        } else if (!state->is_complete) {
            state->gone_callbacks.push_back(callback);
        }
    };
    if (!tasks_->post(add) && phase_ != Phase::answered) {
        callback();
    }
}

}  // namespace knap
