// One client: reads requests one after the other, hands each to the handler, and sends the answer
// before it reads the next. It goes on listening while an answer is computed, so that a client that
// leaves is noticed at once. Lives on the I/O thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "serve/http/event_loop.h"
#include "serve/http/outbox.h"
#include "serve/http/request_reader.h"
#include "serve/http/response_text.h"
#include "serve/http/server.h"

namespace knap {

class Connection;
struct ExchangeState;

// What the connections of a server share.
struct ConnectionContext {
    HttpLimits limits{};
    HeaderCheck check{};
    Handler handler{};
    ErrorBody error_body{};
    EventLoop& loop;
    std::function<void(Connection*)> on_closed{};                    // called once for each
    bool is_closing = false;                                         // no further requests
    std::string scratch = std::string(std::size_t{64} << 10, '\0');  // for received bytes
};

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    // Owns the descriptor of a non-blocking socket.
    Connection(ConnectionContext& context, int descriptor);

    void start();
    void close();          // at once; an unanswered exchange is gone
    void close_if_idle();  // nothing of a request has arrived

    // The answer to the request of `state`, as Exchange has it. Ignored if that is not the one that
    // the connection waits for: because the client is gone, for example.
    void respond(const ExchangeState& state, const HttpResponse& response);
    void begin_stream(const ExchangeState& state, const HttpResponse& head);
    void send(const ExchangeState& state, std::string_view bytes);
    void end_stream(const ExchangeState& state, bool is_complete);
    void abandon(const ExchangeState& state);  // no answer will come

    // Calls `action`; an exception closes the connection.
    void guard(const std::function<void()>& action);

  private:
    enum class Phase {
        receiving,  // a request, or nothing yet
        answering,  // the handler has it
        draining,   // the answer is complete, and being sent
        lingering,  // everything is sent; input is ignored until the client closes too
        closed,
    };

    std::function<void()> callback(void (Connection::*function)());

    // Input.
    void read_on();
    void on_readable();
    void on_end_of_input();
    void on_read_time();
    void process_input();
    void on_head();
    void on_request();
    void refuse(int status, std::string_view message);
    void watch_for_hangup();

    // Output.
    bool is_answering(const ExchangeState& state) const;
    void write_answer(const HttpResponse& response);
    void write_part(std::string_view bytes, std::size_t n_counted);
    void flush();
    void on_writable();
    void on_heartbeat();
    void on_answer_sent();
    void linger();

    ConnectionContext& context_;
    Socket socket_;
    Phase phase_ = Phase::receiving;

    RequestReader reader_;
    std::string inbox_{};  // received, not yet parsed
    Timer read_timer_;
    bool is_waiting_to_read_ = false;
    bool is_processing_ = false;
    bool has_input_ended_ = false;

    std::shared_ptr<ExchangeState> exchange_{};  // of the request that is being answered
    std::string id_{};                           // its x-request-id
    bool is_head_request_ = false;
    bool keeps_alive_ = false;
    BodyFraming framing_ = BodyFraming::length;
    bool must_reset_ = false;  // a stream without chunks was broken: only a reset shows it

    Outbox outbox_{};
    Timer write_timer_;
    Timer heartbeat_timer_;
    bool is_waiting_to_write_ = false;
    bool is_write_timed_ = false;
};

}  // namespace knap
