#include "device/host_images.h"

#include "device/backend.h"

namespace knap {

void HostImages::add(ggml_tensor* tensor) {
    if (backend_.is_host()) {
        return;
    }
    std::vector<std::byte>& image = images_[tensor];
    image.resize(ggml_nbytes(tensor));
    backend_.read(tensor, image.data(), 0, image.size());
    backend_.wait();
}

std::byte* HostImages::data(ggml_tensor* tensor) {
    return backend_.is_host() ? static_cast<std::byte*>(tensor->data) : images_.at(tensor).data();
}

void HostImages::store() {
    for (const auto& [tensor, image] : images_) {
        backend_.write(tensor, image.data(), 0, image.size());
    }
    backend_.wait();
}

}  // namespace knap
