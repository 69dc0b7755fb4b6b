#include "bin/questions.hpp"

#include "bin/import.hpp"
#include "store/look/look.hpp"

namespace zed::bin {
namespace {

struct Answerer {
  env::Store& store;
  proc::JobCommands& commands;
  const std::filesystem::path& attempts;
  Instant now;

  Result<NodeReply> operator()(const ListFiles& question) const {
    return as_reply(store::list_files(store, question));
  }
  Result<NodeReply> operator()(const ReadFile& question) const {
    return as_reply(store::read_file(store, question));
  }
  Result<NodeReply> operator()(const ReadMetrics& question) const {
    return as_reply(store::read_metrics(store, question));
  }
  Result<NodeReply> operator()(const StartCommand& question) const {
    ZED_TRY(proc::Launch launch,
            proc::AttemptFolder::of(attempts, question.job, question.generation).read_launch());
    return as_reply(commands.start(launch, question, now));
  }
  Result<NodeReply> operator()(const ExamineModel& question) const {
    return as_reply(examine_model(store, question.dataset));
  }
  Result<NodeReply> operator()(const TendCommand& question) const {
    return as_reply(commands.tend(question, now));
  }

private:
  template <class Reply> static Result<NodeReply> as_reply(Result<Reply> reply) {
    if (!reply) return fail(std::move(reply).error());
    return NodeReply(std::move(*reply));
  }
};

}  // namespace

Result<NodeReply> answer_question(env::Store& store, proc::JobCommands& commands,
                                  const std::filesystem::path& attempts,
                                  const NodeQuestion& question, Instant now) {
  return std::visit(Answerer{store, commands, attempts, now}, question);
}

}  // namespace zed::bin
