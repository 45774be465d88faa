"""Running a command list on a device: resources, pipelines, prepack, recording, execution."""
