package toolward

import "log/slog"

func init() { slog.SetDefault(Log) }
