defmodule A do
  use Zed.DSL

  def pool, do: "tank"

  deploy :fleet do
  end
end
