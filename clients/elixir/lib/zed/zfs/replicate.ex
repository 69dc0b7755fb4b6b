defmodule Zed.ZFS.Replicate do
  @moduledoc "Sending snapshots between machines, by hand; policies (`replicate`) do it by themselves."

  @patience :timer.hours(24)

  @doc """
  Sends one snapshot to another machine, its properties with it.

      Zed.ZFS.Replicate.sync_to_remote(
        "nvme/models/llama-finetune@v1",
        "root@workstation",
        "tank/models/llama-finetune"
      )

  The sender is the node whose pool that is. A destination that is a node of the fleet receives by
  its agent, whatever the two stores are; snapshots that it lacks before this one come first. Any
  other host receives by ssh and OpenZFS of its own, if the sender is on OpenZFS; the dataset may have
  another name there. The answer comes when the snapshot is there.
  """
  @spec sync_to_remote(String.t(), String.t(), String.t()) :: Zed.Cluster.answer()
  def sync_to_remote(snapshot, destination, dataset) do
    Zed.Cluster.call(
      :sync,
      %{snapshot: snapshot, destination: destination, dataset: dataset},
      @patience
    )
  end
end
