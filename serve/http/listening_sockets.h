// The sockets that a server listens on: one for each address of its host.
#pragma once

#include <string>
#include <vector>

namespace knap {

class ListeningSockets {
  public:
    // Binds and listens, without blocking in accept(). Port 0: any that is free on all addresses.
    // Throws knap::Error if no address can be used, or one is in use.
    ListeningSockets(const std::string& host, int port);
    ~ListeningSockets();
    ListeningSockets(const ListeningSockets&) = delete;
    ListeningSockets& operator=(const ListeningSockets&) = delete;

    int port() const { return port_; }
    std::vector<int> release();  // hands over the descriptors

  private:
    bool listen_on_all(const std::string& host, int port);

    std::vector<int> descriptors_{};
    int port_ = 0;
};

}  // namespace knap
