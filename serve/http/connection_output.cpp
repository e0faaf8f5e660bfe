// Connection: answers.
#include <algorithm>
#include <utility>

#include <sys/socket.h>

#include "serve/http/connection.h"
#include "serve/http/served_exchange.h"

namespace knap {

namespace {

// How long the client has to close its side, after the last answer. If the socket were closed while
// bytes of the client are unread, the client could lose the answer.
constexpr std::chrono::milliseconds kMaxLingerTime{2000};

}  // namespace

bool Connection::is_answering(const ExchangeState& state) const {
    return phase_ == Phase::answering && exchange_.get() == &state;
}

void Connection::respond(const ExchangeState& state, const HttpResponse& response) {
    if (is_answering(state)) {
        exchange_->complete();
        write_answer(response);
    }
}

void Connection::abandon(const ExchangeState& state) {
    if (!is_answering(state)) {
        return;
    }
    if (state.is_gone) {
        close();  // nobody waits for an answer, and none is missing
    } else if (framing_ != BodyFraming::length) {
        end_stream(state, false);
    } else {
        exchange_->complete();
        refuse(500, "internal error");
    }
}

void Connection::write_answer(const HttpResponse& response) {
    keeps_alive_ = keeps_alive_ && !context_.is_closing;
    read_timer_.stop();
    phase_ = Phase::draining;
    std::string text = head_text(response, {.keeps_alive = keeps_alive_, .request_id = id_});
    if (!is_head_request_ && !is_bodiless(response.status)) {
        text += response.body;
    }
    outbox_.add(std::move(text));
    flush();
}

void Connection::begin_stream(const ExchangeState& state, const HttpResponse& head) {
    if (!is_answering(state)) {
        return;
    }
    if (state.is_gone) {
        close();
        return;
    }
    framing_ = reader_.is_chunk_capable() ? BodyFraming::chunks : BodyFraming::until_close;
    keeps_alive_ = keeps_alive_ && !context_.is_closing;
    outbox_.add(
        head_text(head, {.framing = framing_, .keeps_alive = keeps_alive_, .request_id = id_}));
    write_part(head.body, 0);
}

void Connection::send(const ExchangeState& state, std::string_view bytes) {
    if (is_answering(state)) {
        write_part(bytes, bytes.size());
    }
}

void Connection::write_part(std::string_view bytes, std::size_t n_counted) {
    if (is_head_request_) {
        exchange_->n_unsent -= n_counted;
    } else if (!bytes.empty()) {
        outbox_.add(framing_ == BodyFraming::chunks ? chunk_text(bytes) : std::string(bytes),
                    n_counted);
    }
    heartbeat_timer_.start(context_.limits.heartbeat, callback(&Connection::on_heartbeat));
    flush();
}

void Connection::on_heartbeat() {
    if (phase_ == Phase::answering) {
        // A client that does not read needs no signs of life.
        write_part(outbox_.is_empty() ? ":\n\n" : "", 0);
    }
}

void Connection::end_stream(const ExchangeState& state, bool is_complete) {
    if (!is_answering(state)) {
        return;
    }
    exchange_->complete();
    heartbeat_timer_.stop();
    phase_ = Phase::draining;
    if (!is_complete) {
        keeps_alive_ = false;
        must_reset_ = framing_ == BodyFraming::until_close;
    } else if (framing_ == BodyFraming::chunks && !is_head_request_) {
        outbox_.add(std::string(kLastChunk));
    }
    flush();
}

void Connection::flush() {
    if (is_waiting_to_write_ || phase_ == Phase::closed) {
        return;
    }
    if (!outbox_.is_empty()) {
        const Outbox::Progress progress = outbox_.send(socket_.descriptor());
        if (progress.has_failed) {
            close();
            return;
        }
        if (exchange_) {
            exchange_->n_unsent -= progress.n_released;
        }
        if (progress.n_sent > 0) {
            write_timer_.stop();
            is_write_timed_ = false;
        }
    }
    if (!outbox_.is_empty()) {
        is_waiting_to_write_ = true;
        if (!std::exchange(is_write_timed_, true)) {
            write_timer_.start(context_.limits.unsent_time, callback(&Connection::close));
        }
        socket_.wait_writable(callback(&Connection::on_writable));
    } else if (phase_ == Phase::draining) {
        on_answer_sent();
    }
}

void Connection::on_writable() {
    is_waiting_to_write_ = false;
    flush();
}

void Connection::on_answer_sent() {
    exchange_.reset();
    id_.clear();
    framing_ = BodyFraming::length;
    if (!keeps_alive_ || context_.is_closing) {
        linger();
        return;
    }
    reader_.start_next();
    is_head_request_ = false;
    phase_ = Phase::receiving;
    read_timer_.start(context_.limits.keep_alive, callback(&Connection::on_read_time));
    process_input();
    read_on();
}

void Connection::linger() {
    if (must_reset_) {
        const ::linger reset{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
    if (must_reset_ || has_input_ended_) {
        close();
        return;
    }
    phase_ = Phase::lingering;
    inbox_.clear();
    ::shutdown(socket_.descriptor(), SHUT_WR);
    read_timer_.start(std::min(kMaxLingerTime, context_.limits.header_time),
                      callback(&Connection::close));
    read_on();
}

}  // namespace knap
