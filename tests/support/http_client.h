// A blocking HTTP client that sends and shows raw bytes, for tests of servers.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace knap::test {

struct HttpAnswer {
    int status = 0;  // 0: the connection ended before the headers were complete
    std::map<std::string, std::string> headers{};  // names in lower case
    std::string body{};                            // chunks joined
    bool is_complete = false;                      // the body ended as its headers say
};

class HttpClient {
  public:
    // Throws std::runtime_error if nobody listens. `receive_bytes`: of the socket's buffer; 0: the
    // system's.
    explicit HttpClient(int port, const std::string& host = "127.0.0.1", int receive_bytes = 0);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    // False: the server has closed the connection.
    bool send(std::string_view bytes);
    void finish_sending();  // the server reads the end of input
    void reset();           // leaves at once, as a killed process does

    // The next answer; waits for it. `has_body` is false for answers to HEAD.
    HttpAnswer read_answer(bool has_body = true);
    // Of an answer: its status line and headers.
    HttpAnswer read_head();
    // Waits until `text` has arrived, and takes everything up to its end. False: the connection
    // ended.
    bool read_until(std::string_view text);
    // What arrives until the server closes the connection.
    std::string read_all();
    // The connection ended with an error, by which answers may get lost.
    bool was_reset() const { return was_reset_; }
    // The server closes the connection within `time`, and sends nothing before.
    bool is_closed_within(std::chrono::milliseconds time);

    HttpAnswer get(std::string_view path);
    HttpAnswer post(std::string_view path, std::string_view body);

  private:
    bool receive();  // more bytes; false: the connection ended, or nothing came for ten seconds
    std::string take(std::size_t n_bytes);
    void read_chunks(HttpAnswer& answer);

    int socket_ = -1;
    bool was_reset_ = false;
    std::string received_{};
};

}  // namespace knap::test
