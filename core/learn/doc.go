// Package learn turns what a program was seen to do into rules, and writes them into a profile.
//
// A Recorder collects observations while a learning run lasts, Result generalises them family by family, Table
// shows them to a person, and Write puts them into the learned blocks of the profile:
//
//	rec := learn.New(learn.Options{Policy: compiled, ProfilePath: path, Home: home, Cwd: cwd})
//	rec.Add(learn.Observation{Family: learn.FamilyFile, Op: "open", Subject: "/srv/app/data/a.csv"})
//	result := rec.Result()
//	changed, err := learn.Write(path, result, learn.WriteOptions{})
//
// What it trusts: the compiled policy, which says what is allowed already. What it does not trust: every name it is
// given. A file, a host or a variable may be named by an attacker, so a rule is written only if the profile's own
// parser reads it back as exactly what was observed; all else is left out, with an escaped comment that says so.
//
// What it never does: widen beyond the folder that was seen, grant a category where a function was called, store the
// value of a variable, or change a byte that a person wrote.
package learn
