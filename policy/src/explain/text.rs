//! An explanation as text for people.

use std::fmt;

use super::{Explained, ExplainedOutcome, ExplainedProgram, Explanation};
use crate::decision::AskReason;
use crate::grant::OnViolation;
use crate::implementation::DeclaredBy;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            ExplainedOutcome::Allow => "allowed",
            ExplainedOutcome::Ask => "allowed once a person has said yes",
            ExplainedOutcome::Deny => "blocked",
        };
        writeln!(f, "{} of {}: {outcome}", self.tool, self.publisher)?;
        let another = match self.driver_publisher == self.publisher {
            true => "",
            false => ", ANOTHER publisher",
        };
        let (driver, publisher) = (&self.driver, &self.driver_publisher);
        writeln!(f, "  driver {driver} of {publisher}{another}")?;
        for rule in &self.denied_by {
            writeln!(f, "  denied by {rule}")?;
        }
        if let Some(lack) = &self.context {
            writeln!(f, "  context: the contract requires one")?;
            writeln!(f, "    missing {}", lack.why)?;
        }
        for slug in &self.secrets_missing {
            writeln!(f, "  secret {slug}: it is granted")?;
            writeln!(f, "    missing it has no value")?;
        }
        if let Some(program) = &self.program {
            write!(f, "{program}")?;
        } else if self.capabilities.is_empty() {
            writeln!(f, "  declares nothing, and gets nothing")?;
        }
        for capability in &self.capabilities {
            write!(f, "{capability}")?;
        }
        let refers = |reason: &AskReason| matches!(reason, AskReason::Policy(_));
        if let Some(reference) = &self.approval_policy
            && !self.ask.iter().any(refers)
        {
            writeln!(f, "  refers to {reference}")?;
        }
        for reason in &self.ask {
            writeln!(f, "  asks because {reason}")?;
        }
        for rule in &self.preapproved {
            writeln!(f, "  approved by {rule}")?;
        }
        if self.on_violation == OnViolation::End {
            writeln!(f, "  ends at the first attempt to go beyond this")?;
        }
        if !self.lines_to_add.is_empty() {
            let lines = self.lines_to_add.trim_end();
            writeln!(f, "\nto allow it, add to the policy:\n\n{lines}")?;
        }
        if !self.narrower_lines.is_empty() {
            let but = "or only this, with the hosts and workspaces that you choose";
            writeln!(f, "\n{but}:\n\n{}", self.narrower_lines.trim_end())?;
        }
        Ok(())
    }
}

impl fmt::Display for ExplainedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = toolward_support::text::quoted(&self.command.join(" "), 200);
        writeln!(f, "  runs {command} OUTSIDE THE SANDBOX")?;
        for granted in &self.granted {
            writeln!(f, "    exec    {granted}")?;
        }
        match &self.missing {
            Some(why) => writeln!(f, "    missing {why}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match (self.declared_by, self.mutates) {
            (DeclaredBy::Contract, false) => "the contract requires it",
            (DeclaredBy::Contract, true) => "the contract changes it",
            (DeclaredBy::Driver, _) => "the driver adds it",
        };
        writeln!(f, "  {}: {who}", self.declared)?;
        match &self.asked {
            None => return writeln!(f, "    unused  the driver's egress has nothing of it"),
            Some(asked) if *asked != self.declared => {
                writeln!(f, "    asked   {asked}, by the driver's egress")?;
            }
            Some(_) => {}
        }
        for rule in &self.rules {
            writeln!(f, "    policy  {rule}")?;
        }
        for granted in &self.granted {
            writeln!(f, "    grant   {granted}")?;
        }
        if let Some(why) = &self.withheld {
            let what = match self.granted.is_empty() {
                true => "left out",
                false => "the rest is left out",
            };
            writeln!(f, "    partial {what}: {why}")?;
        }
        match &self.missing {
            Some(why) => writeln!(f, "    missing {why}"),
            None => Ok(()),
        }
    }
}
