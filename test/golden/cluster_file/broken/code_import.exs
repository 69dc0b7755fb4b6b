defmodule A do
  import Zed.DSL
  alias Zed.Cluster
  deploy :fleet do
  end
end
