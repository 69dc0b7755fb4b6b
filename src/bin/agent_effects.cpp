// What the agent's state machine decides, done: its store's work and other slow things on workers,
// the rest at once. What came of it goes back as an event.

#include "bin/agent_shell.hpp"
#include "bin/import.hpp"
#include "bin/prepare_launch.hpp"
#include "bin/questions.hpp"
#include "proc/job_log.hpp"

namespace zed::bin {

/// One overload an effect.
struct AgentShell::Performer {
  AgentShell& shell;

  void operator()(const agent::SayToController& e) const { shell.links_->say(e.link, e.message); }
  void operator()(const agent::CloseLink& e) const { shell.links_->close(e.link); }

  void operator()(const agent::CallStore& e) const {
    using Reply = Result<env::StoreReply>;
    auto work = [&store = shell.store_, request = e.request] {
      return env::perform(store, request);
    };
    auto done = [self = &shell, id = e.id](Reply reply) {
      self->take(agent::StoreReturned{id, std::move(reply)});
    };
    off_loop<Reply>(shell.store_workers_, std::move(work), done);
  }

  void operator()(const agent::LaunchAttempt& e) const { shell.launch(e); }
  // An order to a supervisor that is gone is lost: the end of its attempt is on its way.
  void operator()(const agent::StopProcesses& e) const {
    (void)shell.attempts_->order(e.job, e.generation, proc::StopOrder{e.mode});
  }
  void operator()(const agent::ExtendLease& e) const {
    (void)shell.attempts_->order(e.job, e.generation, proc::LeaseOrder{e.lease});
  }
  void operator()(const agent::FreezeProcesses& e) const {
    auto sent = shell.attempts_->order(e.job, e.generation, proc::FreezeOrder{e.frozen});
    if (e.id == 0) return;
    if (sent)
      shell.freezing_[{e.job, e.generation}] = e.id;
    else
      shell.loop_.post([self = &shell, id = e.id, sent] {
        self->take(agent::ProcessesFrozen{id, sent});
      });
  }
  void operator()(const agent::ForgetAttempt& e) const {
    shell.job_sockets_.erase({e.job, e.generation});
    shell.attempts_->forget(e.job, e.generation);
  }

  void operator()(const agent::AskJob& e) const {
    if (auto* socket = shell.socket_of(e.connection))
      socket->ask(e.connection, e.ask, e.deadline, e.reason);
  }
  void operator()(const agent::AnswerJob& e) const {
    if (auto* socket = shell.socket_of(e.connection)) socket->answer(e.connection, e.reply);
  }

  void operator()(const agent::StartTransfer& e) const {
    bool sends = e.role == agent::StartTransfer::Role::send;
    shell.transfers_->start({e.step, sends, e.ticket, e.dataset_changes, e.through, e.passes_to});
  }
  void operator()(const agent::StartHostSend& e) const { shell.send_to_host(e); }
  void operator()(const agent::CancelTransfer& e) const {
    auto to_host = shell.host_sends_.find(e.step);
    if (to_host != shell.host_sends_.end()) return to_host->second->cancel();
    shell.transfers_->cancel(e.step);
  }

  void operator()(const agent::ImportPath& e) const {
    auto report = [self = &shell, step = e.step](Bytes done, Bytes total, Bytes rate) {
      self->loop_.post([self, step, done, total, rate] {
        self->take(agent::TransferProgressed{step, done, total, rate});
      });
    };
    auto work = [&store = shell.store_, import = e.import, report] {
      return import_files(store, import, report);
    };
    auto done = [self = &shell, step = e.step](Result<Snapshot> result) {
      self->take(agent::ImportEnded{step, std::move(result)});
    };
    off_loop<Result<Snapshot>>(shell.store_workers_, std::move(work), done);
  }

  void operator()(const agent::UnpackCode& e) const {
    auto work = [&store = shell.store_, dataset = e.dataset, code = e.code] {
      return unpack_code(store, dataset, code);
    };
    auto done = [self = &shell, id = e.id](Status result) {
      self->take(agent::CodeUnpacked{id, std::move(result)});
    };
    off_loop<Status>(shell.store_workers_, std::move(work), done);
  }

  void operator()(const agent::SaveNodeState& e) const {
    write([e](NodeFiles& files) { return files.save(e.highest_term, e.journal_second); },
          [self = &shell, id = e.id](Status result) {
            self->take(agent::NodeStateSaved{id, std::move(result)});
          });
  }
  void operator()(const agent::StoreJournalCopy& e) const {
    write([records = e.records](NodeFiles& files) { return files.store_copy(records); },
          [self = &shell, id = e.id](Status result) {
            self->take(agent::JournalCopyStored{id, std::move(result)});
          });
  }

  void operator()(const agent::FetchLog& e) const {
    auto work = [&store = shell.store_, request = e.request]() -> Result<LogPage> {
      ZED_TRY(auto live, store.open_live(request.dataset));
      ZED_TRY(LogPage page, proc::read_log(live, request.offset));
      page.request = request.request;
      return page;
    };
    auto done = [self = &shell, id = e.id](Result<LogPage> result) {
      self->take(agent::LogRead{id, std::move(result)});
    };
    off_loop<Result<LogPage>>(shell.store_workers_, std::move(work), done);
  }

  void operator()(const agent::AnswerQuestion& e) const {
    auto work = [self = &shell, question = e.question, now = shell.loop_.clocks().monotonic] {
      return answer_question(self->store_, self->commands_, self->files_.attempts(), question, now);
    };
    auto done = [self = &shell, id = e.id](Result<NodeReply> result) {
      self->take(agent::QuestionAnswered{id, std::move(result)});
    };
    off_loop<Result<NodeReply>>(shell.question_workers_, std::move(work), done);
  }

  /// Blocking work, its result handed to `done` on the loop; a full queue is such a result too.
  template <class T, class Work, class Done>
  void off_loop(net::WorkerPool& workers, Work work, Done done) const {
    if (auto posted = workers.run<T>(std::move(work), done); !posted)
      shell.loop_.post([done, posted] { done(fail(posted.error())); });
  }

  template <class Work, class Done> void write(Work work, Done done) const {
    auto on_files = [&files = shell.files_, work = std::move(work)] { return work(files); };
    off_loop<Status>(shell.file_worker_, std::move(on_files), done);
  }
};

void AgentShell::perform(const agent::Effect& effect) {
  std::visit(Performer{*this}, effect);
}

void AgentShell::launch(const agent::LaunchAttempt& effect) {
  Key key{effect.launch.attempt.job, effect.launch.attempt.generation};
  auto failed = [this, key](const Error& error) {
    auto starting = starting_.extract(key);
    if (!starting.empty()) take(agent::AttemptStarted{starting.mapped(), fail(error)});
  };
  auto prepared = [this, failed](Result<proc::Launch> launch) {
    if (!launch) return failed(launch.error());
    if (auto opened = open_job_socket(*launch); !opened) return failed(opened.error());
    attempts_->launch(std::move(*launch), [failed](Status started) {
      if (!started) failed(started.error());
    });
  };
  starting_[key] = effect.id;
  auto work = [this, request = effect.launch] {
    return prepare_launch(config_, store_, gpus_, request);
  };
  if (auto posted = store_workers_.run<Result<proc::Launch>>(std::move(work), prepared); !posted)
    loop_.post([failed, posted] { failed(posted.error()); });
}

void AgentShell::send_to_host(const agent::StartHostSend& effect) {
  const StepId step = effect.step;
  auto send =
      std::make_shared<store::HostSend>(store_, store::zfs::make_system_commands(), config_.ssh);
  host_sends_[step] = send;
  auto report = [this, step](Bytes done, Bytes total, Bytes rate) {
    loop_.post([this, step, done, total, rate] {
      take(agent::TransferProgressed{step, done, total, rate});
    });
  };
  auto work = [send, wanted = effect.send, report] { return send->run(wanted, report); };
  auto done = [this, step](Result<store::HostSent> result) {
    host_sends_.erase(step);
    using Ended = Result<agent::TransferOutcome>;
    take(agent::TransferEnded{step, result ? Ended({result->moved, std::nullopt})
                                           : Ended(fail(result.error()))});
  };
  if (auto posted = host_workers_.run<Result<store::HostSent>>(std::move(work), done); !posted)
    loop_.post([done, posted] { done(fail(posted.error())); });
}

}  // namespace zed::bin
