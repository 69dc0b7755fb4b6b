#include "store/zfs/resume.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "net/exec.hpp"

namespace zed::store::zfs {
namespace {

using net::Fd;

// enum lzc_send_flags of libzfs_core.h; a resumed stream must have the flags of its beginning.
constexpr int flag_embed_data = 1 << 0;
constexpr int flag_large_block = 1 << 1;
constexpr int flag_compress = 1 << 2;
constexpr int flag_raw = 1 << 3;

/// libzfs_core, loaded once and never unloaded.
struct Library {
  using Init = int (*)();
  using SendResume = int (*)(const char*, const char*, int, int, std::uint64_t, std::uint64_t);
  SendResume send_resume = nullptr;
  std::string problem;

  Library() {
    void* handle = ::dlopen("libzfs_core.so.3", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      problem = ::dlerror();
      return;
    }
    auto init = reinterpret_cast<Init>(::dlsym(handle, "libzfs_core_init"));
    send_resume = reinterpret_cast<SendResume>(::dlsym(handle, "lzc_send_resume"));
    int error = init != nullptr ? init() : ENOSYS;
    if (error == 0 && send_resume != nullptr) return;
    problem = std::string("it cannot be used: ") + std::strerror(error != 0 ? error : ENOSYS);
    send_resume = nullptr;
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

/// The call blocks until all has been read, so it has a thread of its own.
class Resumed final : public Child {
public:
  Resumed(std::string snapshot, std::string from, const ResumePoint& point, Fd read, Fd write)
      : read_(std::move(read)) {
    int flags = (point.embedded ? flag_embed_data : 0) |
                (point.large_blocks ? flag_large_block : 0) |
                (point.compressed ? flag_compress : 0) | (point.raw ? flag_raw : 0);
    thread_ = std::thread([this, snapshot = std::move(snapshot), from = std::move(from), flags,
                           object = point.object, offset = point.offset,
                           out = std::move(write)]() mutable {
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);  // the reader may go away at any time
      pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
      error_ = library().send_resume(snapshot.c_str(), from.empty() ? nullptr : from.c_str(),
                                     out.get(), flags, object, offset);
      out.reset();
    });
  }
  ~Resumed() override { end(); }

  Result<std::size_t> read(std::span<std::byte> buffer) override {
    for (;;) {
      ssize_t n = ::read(read_.get(), buffer.data(), buffer.size());
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return fail(net::system_error(errno, "read a resumed stream"));
    }
  }
  Status write(std::span<const std::byte>) override {
    return fail(ErrorCode::internal, "a resumed stream is read, not written");
  }
  Result<Output> finish() override {
    end();
    return Output{error_ == 0, {}, error_ == 0 ? std::string() : std::strerror(error_)};
  }

  void kill() override { read_.reset(); }

private:
  void end() {
    read_.reset();
    if (thread_.joinable()) thread_.join();
  }

  Fd read_;
  int error_ = 0;  ///< read after the thread has ended
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Child>> resume_send(const std::string& snapshot, const std::string& from,
                                           const ResumePoint& point) {
  if (library().send_resume == nullptr)
    return fail(ErrorCode::unsupported,
                "cannot go on with a stream that another machine began: libzfs_core.so.3: " +
                    library().problem,
                "install OpenZFS's libraries, or abort the receive: then it begins anew");
  ZED_TRY(net::Pipe pipe, net::make_pipe());
  return std::make_unique<Resumed>(snapshot, from, point, std::move(pipe.read),
                                   std::move(pipe.write));
}

}  // namespace zed::store::zfs
