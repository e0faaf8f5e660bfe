// Connection: life and input.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/log.h"
#include "serve/http/connection.h"
#include "serve/http/request_id.h"
#include "serve/http/served_exchange.h"

namespace knap {

namespace {

// Of further requests, while one is being answered.
constexpr std::size_t kMaxWaitingBytes = std::size_t{64} << 10;
// How often a connection with that many bytes is asked whether the client has left.
constexpr std::chrono::milliseconds kHangupPeriod{250};

// Small parts leave at once, and peers that vanish without a word are found out.
void set_socket_options(int descriptor) {
    const auto set = [&](int level, int option, int value) {
        ::setsockopt(descriptor, level, option, &value, sizeof(value));
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

Connection::Connection(ConnectionContext& context, int descriptor)
    : context_(context),
      socket_(context.loop, descriptor),
      reader_(context_.limits),
      read_timer_(context.loop),
      write_timer_(context.loop),
      heartbeat_timer_(context.loop) {
    set_socket_options(descriptor);
}

void Connection::start() {
    read_timer_.start(context_.limits.header_time, callback(&Connection::on_read_time));
    read_on();
}

void Connection::close() {
    if (std::exchange(phase_, Phase::closed) == Phase::closed) {
        return;
    }
    const auto self = shared_from_this();
    read_timer_.stop();
    write_timer_.stop();
    heartbeat_timer_.stop();
    socket_.close();
    context_.on_closed(this);
    if (exchange_) {
        exchange_->mark_gone();
    }
}

void Connection::close_if_idle() {
    if (phase_ == Phase::receiving && reader_.is_at_start() && inbox_.empty()) {
        close();
    }
}

void Connection::guard(const std::function<void()>& action) {
    try {
        action();
    } catch (const std::exception& error) {
        log_warning("server: a connection failed: ", error.what());
        close();
    }
}

std::function<void()> Connection::callback(void (Connection::*function)()) {
    return [connection = weak_from_this(), function] {
        if (const auto self = connection.lock(); self && self->phase_ != Phase::closed) {
            self->guard([&] { (self.get()->*function)(); });
        }
    };
}

void Connection::read_on() {
    if (phase_ == Phase::closed || is_waiting_to_read_ || has_input_ended_) {
        return;
    }
    if (phase_ != Phase::receiving && inbox_.size() >= kMaxWaitingBytes) {
        read_timer_.start(kHangupPeriod, callback(&Connection::watch_for_hangup));
        return;
    }
    is_waiting_to_read_ = true;
    socket_.wait_readable(callback(&Connection::on_readable));
}

void Connection::on_readable() {
    is_waiting_to_read_ = false;
    std::size_t n_wanted = context_.scratch.size();
    if (phase_ != Phase::receiving) {
        n_wanted = std::min(n_wanted, kMaxWaitingBytes - std::min(kMaxWaitingBytes, inbox_.size()));
    }
    const ssize_t n_read =
        n_wanted == 0 ? -1 : ::recv(socket_.descriptor(), context_.scratch.data(), n_wanted, 0);
    if (n_read == 0) {
        on_end_of_input();
        return;
    }
    if (n_read > 0 && phase_ != Phase::lingering) {
        inbox_.append(context_.scratch, 0, static_cast<std::size_t>(n_read));
        process_input();
    } else if (n_read < 0 && n_wanted > 0 && errno != EAGAIN && errno != EINTR) {
        close();
    }
    read_on();
}

// The client sends no more; most likely it has left. If it only closed its side and waits, a whole
// answer still reaches it.
void Connection::on_end_of_input() {
    has_input_ended_ = true;
    if (phase_ == Phase::receiving || phase_ == Phase::lingering) {
        close();
    } else if (exchange_) {
        exchange_->mark_gone();
    }
}

// Nothing can be read before the answer is sent, because too much has been read ahead.
void Connection::watch_for_hangup() {
    if (phase_ != Phase::answering && phase_ != Phase::draining) {
        return;
    }
    pollfd request{.fd = socket_.descriptor(), .events = POLLRDHUP, .revents = 0};
    if (::poll(&request, 1, 0) > 0) {
        if (exchange_) {
            exchange_->mark_gone();
        }
        return;
    }
    read_timer_.start(kHangupPeriod, callback(&Connection::watch_for_hangup));
}

void Connection::on_read_time() {
    if (phase_ == Phase::receiving && !reader_.is_at_start()) {
        refuse(408, "the request did not arrive in time");
    } else {
        close();
    }
}

void Connection::process_input() {
    if (std::exchange(is_processing_, true)) {
        return;  // the loop below goes on
    }
    while (phase_ == Phase::receiving) {
        const bool was_at_start = reader_.is_at_start();
        const RequestReader::Result result = reader_.read(inbox_);
        if (result == RequestReader::Result::refused) {
            refuse(reader_.status(), reader_.message());
        } else if (result == RequestReader::Result::head) {
            on_head();
        } else if (result == RequestReader::Result::complete) {
            on_request();
        } else if (has_input_ended_) {
            close();
        } else {
            if (was_at_start && !reader_.is_at_start()) {
                read_timer_.start(context_.limits.header_time, callback(&Connection::on_read_time));
            }
            break;
        }
    }
    is_processing_ = false;
}

void Connection::on_head() {
    const HttpRequest& head = reader_.request();
    id_ = head.id;
    is_head_request_ = head.method == "HEAD";
    keeps_alive_ = reader_.keeps_alive();
    std::optional<HttpResponse> answer;
    try {
        answer = context_.check ? context_.check(head) : std::nullopt;
    } catch (const std::exception& error) {
        log_warning("server: the check of a request failed: ", error.what());
        refuse(500, "internal error");
        return;
    }
    if (answer) {
        keeps_alive_ = keeps_alive_ && !reader_.has_body();
        write_answer(*answer);
        return;
    }
    if (reader_.is_body_too_long()) {
        refuse(413, too_long_body(context_.limits));
        return;
    }
    if (reader_.expects_continue()) {
        outbox_.add(std::string(kContinue));
        flush();
    }
    read_timer_.start(context_.limits.body_time, callback(&Connection::on_read_time));
}

void Connection::on_request() {
    read_timer_.stop();
    phase_ = Phase::answering;
    exchange_ = std::make_shared<ExchangeState>();
    exchange_->is_gone = has_input_ended_;
    const auto exchange =
        std::make_shared<ServedExchange>(std::move(reader_.request()), exchange_, weak_from_this(),
                                         context_.loop.tasks(), context_.limits.unsent_bytes);
    try {
        context_.handler(exchange);
    } catch (const std::exception& error) {
        // An exchange that is dropped without an answer is answered with 500.
        log_warning("server: the handler of a request failed: ", error.what());
    }
}

void Connection::refuse(int status, std::string_view message) {
    if (id_.empty()) {
        id_ = request_id(reader_.request().header("x-request-id"));
    }
    keeps_alive_ = false;
    HttpResponse response{.status = status};
    response.body = context_.error_body(status, message);
    write_answer(response);
}

}  // namespace knap
