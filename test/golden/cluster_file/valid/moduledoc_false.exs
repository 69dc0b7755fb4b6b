defmodule A.B.C do
  @moduledoc false
  use(Zed.DSL)


  deploy :fleet, do: ()
end
