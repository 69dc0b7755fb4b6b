defmodule Fleet do
  @moduledoc """
  What this fleet is for.

    indented
  """
  use Zed.DSL
  deploy :fleet do
  end
end
