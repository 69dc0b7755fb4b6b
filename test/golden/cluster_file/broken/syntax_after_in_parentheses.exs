deploy :fleet, do: (job :a; job :b, do: (after :a; priority 1))
