# Rate and rate per watt of each operator against its intensity, per device.
load lines
