deploy :fleet do
  job :a, do: timeout "90 seconds"
  job :b, do: timeout "15minutes"
  job :c, do: timeout "12 h"
  job :d, do: timeout " 2  days "
  job :e, do: checkpoint_every "10 minutes"
  job :f, do: checkpoint_every "5 epochs"
  job :g, do: checkpoint_every "1 step"
  job :h, do: checkpoint_every "30 s"
end
