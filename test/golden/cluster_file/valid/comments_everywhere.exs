# before everything

# and again


deploy :fleet, # behind a comma
  # before the pool
  pool: "tank" do # behind do


  # first in the block

  node :server, # the big one
    # where it is
    address: "10.0.0.5", # static
    pool: "nvme" do # behind do
    # only a comment

    # and another
  end # behind end
  #no space
  node :laptop # behind a statement
  job :train do
    run [ # behind a bracket
      "python3", # the program
      # its argument
      "train.py" # no comma
      # after the last
    ]
    env( # in parentheses
      A: "1", # one
      B: # of key
        "2" # two
    )
    requires [vram: 48, # in brackets
              gpus: 2]
    prefer gpu: [ # empty but
      "A100",
    ]

    # last in the block
  end

  # last of all
end
# behind everything
